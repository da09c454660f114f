"""Tasks that are refused unless a dataset string says `?refused=yes`, each with what `swift-rlvr reasoning-gym audit`
found; missing dependencies are in `library.py`."""

REFUSED = {
    "boxnet": "no right answer is known, so that nothing shows that one can be earned",
    "propositional_logic": "a premise that is copied counts as a conclusion, so that nothing has to be inferred",
    "rush_hour": "no right answer is known, so that nothing shows that one can be earned",
}
