"""The constraints of IFBench (arXiv 2507.02833) on words, sentences and counts, each as its wording
says.

Where IFBench's check and its wording differ, the wording counts; `docs/rewards/instructions.md`
lists where they do. No check is met by an answer to which it does not apply: sentences that grow
are at least two.
"""

import re
import string
from collections import Counter
from itertools import pairwise

import regex

from swift_rlvr.verifiers.instructions.answer import (
    Answer,
    folded_words,
    has_word,
    occurrences,
    words_of,
)
from swift_rlvr.verifiers.instructions.constraint import (
    BadConstraint,
    Outcome,
    Relation,
    constraint,
)
from swift_rlvr.verifiers.instructions.word_lists import (
    CONJUNCTIONS,
    NO_VERBS,
    PERSON_NAMES,
    PRONOUNS,
    STOP_WORDS,
    VERBS,
)

_PUNCTUATION = string.punctuation + "“”‘’…—–。，！？；：、"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_JAPANESE = regex.compile(r"[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]")
_EMOJI = regex.compile(
    r"\p{Extended_Pictographic}|\p{Regional_Indicator}|\p{Emoji_Modifier}|\ufe0f|\u20e3"
)
_CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
_TOLERANCE = 2  # per cent
_LEAST_PALINDROME = 5
_PALINDROMES = 10
_VOWEL_GROUP = re.compile(r"[aeiouy]+")
# Two vowels that are often two syllables: cre-ate, be-ing, li-on, du-al.
_APART = re.compile(r"ia|ie|io|iu|ea|eo|ua|ue|uo|oi|yi|ei")


def _bare(token: str) -> str:
    return token.strip(_PUNCTUATION)


def _tokens(text: str) -> list[str]:
    """What stands between spaces, without punctuation around it."""
    return [_bare(token) for token in text.split() if _bare(token)]


# --- Counts


@constraint("count:word_count_range")
def word_count_range(answer: Answer, min_words: int, max_words: int) -> Outcome:
    if min_words > max_words:
        raise BadConstraint(
            f"count:word_count_range: 'min_words' {min_words} is more than 'max_words' {max_words}"
        )
    count = len(answer.words)
    return Outcome(
        min_words <= count <= max_words, f"words: {count}, asked {min_words} to {max_words}"
    )


@constraint("count:unique_word_count")
def unique_word_count(answer: Answer, N: int) -> Outcome:
    count = len({*answer.folded_words})
    return Relation.AT_LEAST.outcome(count, N, "different words")


@constraint("count:conjunctions")
def conjunctions(answer: Answer, small_n: int) -> Outcome:
    present = CONJUNCTIONS.intersection(answer.folded_words)
    return Relation.AT_LEAST.outcome(len(present), small_n, "different coordinating conjunctions")


@constraint("count:person_names")
def person_names(answer: Answer, N: int) -> Outcome:
    present = PERSON_NAMES & {word.removesuffix("'s").removesuffix("’s") for word in answer.words}
    return Relation.AT_LEAST.outcome(len(present), N, "different names of the list")


@constraint("count:numbers")
def numbers(answer: Answer, N: int) -> Outcome:
    return Relation.EXACTLY.outcome(len(_NUMBER.findall(answer.text)), N, "numbers")


@constraint("count:pronouns")
def pronouns(answer: Answer, N: int) -> Outcome:
    count = sum(1 for word in answer.words if re.split("['’]", word.lower())[0] in PRONOUNS)
    return Relation.AT_LEAST.outcome(count, N, "personal and possessive pronouns")


@constraint("count:punctuation")
def punctuation(answer: Answer) -> Outcome:
    text = answer.text.translate(str.maketrans("。，！？；：", ".,!?;:"))
    # The marks of the interrobang count once.
    rest, interrobangs = re.subn(r"\?!|!\?|‽", " ", text, count=1)
    missing = [mark for mark in ".,!?;:" if mark not in rest]
    if not interrobangs:
        missing.append("the interrobang ?!")
    return Outcome(
        not missing, f"missing: {' '.join(missing)}" if missing else "all marks are there"
    )


@constraint("count:words_japanese")
def words_japanese(answer: Answer, N: int) -> Outcome:
    if N < 1:
        raise BadConstraint("count:words_japanese: 'N' must be at least 1, got 0")
    tokens = answer.text.split()
    if len(tokens) < N:
        return Outcome(False, f"there are only {len(tokens)} words")
    for place in range(N - 1, len(tokens), N):
        token = _bare(tokens[place])
        if token and not token.isdecimal() and not _JAPANESE.search(token):
            return Outcome(False, f"word {place + 1} is not in Japanese: {token}")
    return Outcome(True, f"each {N}th of {len(tokens)} words is in Japanese")


@constraint("count:keywords_multiple")
def keywords_multiple(
    answer: Answer, keyword1: str, keyword2: str, keyword3: str, keyword4: str, keyword5: str
) -> Outcome:
    wanted = {keyword1: 1, keyword2: 2, keyword3: 3, keyword4: 5, keyword5: 7}
    found = {keyword: occurrences(keyword, answer.prose) for keyword in wanted}
    shown = ", ".join(f"{word}: {found[word]} of {count}" for word, count in wanted.items())
    return Outcome(found == wanted, shown)


# --- Shares


@constraint("ratio:stop_words")
def stop_words(answer: Answer, percentage: int) -> Outcome:
    if not answer.words:
        return Outcome(False, "there are no words")
    count = sum(1 for word in answer.words if word.lower().replace("’", "'") in STOP_WORDS)
    share = 100 * count / len(answer.words)
    return Outcome(share <= percentage, f"stop words: {share:.1f}%, asked at most {percentage}%")


def _ends(answer: Answer) -> Counter[str]:
    """How many sentences end with each mark."""
    marks = str.maketrans("。！？؟", ".!??")
    ends: Counter[str] = Counter()
    for sentence in answer.sentences:
        end = sentence.translate(marks).rstrip("\"'”’»)]*_")[-1:]
        ends[end if end in ".?!" else "none"] += 1
    return ends


@constraint("ratio:sentence_type")
def sentence_type(answer: Answer) -> Outcome:
    ends = _ends(answer)
    passed = ends["?"] > 0 and ends["."] == 2 * ends["?"]
    return Outcome(passed, f"declarative: {ends['.']}, interrogative: {ends['?']}, asked 2 to 1")


@constraint("ratio:sentence_balance")
def sentence_balance(answer: Answer) -> Outcome:
    ends = _ends(answer)
    passed = 0 < ends["."] == ends["?"] == ends["!"]
    shown = f"declarative: {ends['.']}, interrogative: {ends['?']}, exclamatory: {ends['!']}"
    return Outcome(passed, f"{shown}, asked as many of each")


@constraint("ratio:sentence_words")
def sentence_words(answer: Answer) -> Outcome:
    lengths = [len(sentence) for sentence in answer.sentences]
    if len(lengths) != 3:
        return Relation.EXACTLY.outcome(len(lengths), 3, "sentences")
    if len({*lengths}) > 1:
        return Outcome(False, f"characters: {', '.join(map(str, lengths))}, asked the same number")
    first, second, third = (set(folded_words(sentence)) for sentence in answer.sentences)
    shared = (first & second) | (first & third) | (second & third)
    shown = f"in several sentences: {', '.join(sorted(shared))}"
    return Outcome(not shared, shown if shared else f"three sentences of {lengths[0]} characters")


@constraint("ratio:overlap")
def overlap(answer: Answer, reference_text: str, percentage: int) -> Outcome:
    # IFBench takes three characters, its wording may mean three words.
    shares = []
    for unit in (list, words_of):
        own = _trigrams(unit(answer.text))
        if own:
            shares.append(100 * len(own & _trigrams(unit(reference_text))) / len(own))
    passed = any(abs(share - percentage) <= _TOLERANCE for share in shares)
    shown = " of characters, ".join(f"{share:.1f}%" for share in shares)
    return Outcome(passed, f"overlap: {shown} of words, asked {percentage}% (±{_TOLERANCE}%)")


def _trigrams(units: list[str]) -> set[tuple[str, ...]]:
    return {tuple(units[start : start + 3]) for start in range(len(units) - 2)}


# --- Words


@constraint("words:alphabet")
def alphabet(answer: Answer) -> Outcome:
    letters = [token[0].lower() for token in _tokens(answer.text)]
    if len(letters) < 2 or letters[0] not in string.ascii_lowercase:
        return Outcome(False, "there are no two words that begin with letters")
    for place, letter in enumerate(letters):
        expected = chr(97 + (ord(letters[0]) - 97 + place) % 26)
        if letter != expected:
            return Outcome(False, f"word {place + 1} begins with {letter!r}, not {expected!r}")
    return Outcome(True, f"{len(letters)} words follow the alphabet")


@constraint("words:vowel")
def vowel(answer: Answer) -> Outcome:
    if len(answer.lines) != 1:
        return Outcome(False, f"paragraphs: {len(answer.lines)}, asked one")
    vowels = sorted({*answer.text.lower()} & {*"aeiou"})
    return Outcome(0 < len(vowels) <= 3, f"vowels: {' '.join(vowels)}, asked at most three")


@constraint("words:consonants")
def consonants(answer: Answer) -> Outcome:
    if not answer.words:
        return Outcome(False, "there are no words")
    for token in _tokens(answer.text):
        if not _CLUSTER.search(token.lower()):
            return Outcome(False, f"no cluster in {token!r}")
    return Outcome(True, "each word has one")


@constraint("words:palindrome")
def palindrome(answer: Answer) -> Outcome:
    palindromes = set()
    for token in _tokens(answer.text.lower()):
        is_long = len(token) >= _LEAST_PALINDROME and token.isalpha() and len({*token}) > 1
        if is_long and token == token[::-1]:
            palindromes.add(token)
    return Relation.AT_LEAST.outcome(len(palindromes), _PALINDROMES, "different palindromes")


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


@constraint("words:prime_lengths")
def prime_lengths(answer: Answer) -> Outcome:
    if not answer.words:
        return Outcome(False, "there are no words")
    letters = str.maketrans("", "", _PUNCTUATION)
    for token in answer.text.split():
        word = token.translate(letters)
        if word and not _is_prime(len(word)):
            return Outcome(False, f"{word!r} has {len(word)} letters")
    return Outcome(True, "all lengths are prime numbers")


@constraint("words:start_verb")
def start_verb(answer: Answer) -> Outcome:
    if not answer.words:
        return Outcome(False, "there are no words")
    first = answer.words[0].lower()
    if first in NO_VERBS:
        return Outcome(False, f"{first!r} is no verb")
    if _is_verb(first):
        return Outcome(True, f"{first!r} is a verb")
    return Outcome(None, f"whether {first!r} is a verb is not known here")


def _is_verb(word: str) -> bool:
    """Whether a word is a form of a known verb."""
    stems = [word]
    for ending, others in (("ing", ("", "e")), ("ed", ("", "e")), ("es", ("", "e")), ("s", ("",))):
        stem = word.removesuffix(ending)
        if stem == word:
            continue
        stems += [stem + other for other in others]
        if stem[-1:] == stem[-2:-1]:  # stopping
            stems.append(stem[:-1])
        if stem.endswith("i"):  # tried, tries
            stems.append(stem[:-1] + "y")
    return any(stem in VERBS for stem in stems)


@constraint("words:repeats")
def repeats(answer: Answer, small_n: int) -> Outcome:
    counts = Counter(answer.folded_words)
    if not counts:
        return Outcome(False, "there are no words")
    word, most = counts.most_common(1)[0]
    return Relation.AT_MOST.outcome(most, small_n, f"{word!r}, the most frequent word")


@constraint("words:odd_even_syllables")
def odd_even_syllables(answer: Answer) -> Outcome:
    words = [word.lower() for word in answer.words]
    if len(words) < 2:
        return Outcome(False, "there are no two words")
    # No list has the syllables of every word, so a word that may have two numbers may stand in
    # either place.
    parities = []
    for word in words:
        parities.append({count % 2 for count in _syllables(word)})
    for first in (0, 1):
        places = enumerate(parities)
        if all((first + place) % 2 in possible for place, possible in places):
            return Outcome(True, "odd and even numbers of syllables alternate")
    previous = parities[0]
    for word, before, possible in zip(words[1:], words, parities[1:], strict=False):
        possible_here = {parity for parity in possible if 1 - parity in previous}
        if not possible_here:
            return Outcome(False, f"{before!r} and {word!r} do not alternate")
        previous = possible_here
    return Outcome(False, "odd and even numbers of syllables do not alternate")


def _syllables(word: str) -> set[int]:
    """How many syllables an English word may have."""
    letters = re.sub(r"[^a-z]", "", word)
    count = len(_VOWEL_GROUP.findall(letters))
    if not count:
        return {1}
    possible = {count}
    # The e at the end is silent, but in "the" and "apple"; so is that of -es and -ed.
    if count > 1 and re.search(r"[^aeiouy]e[sd]?$", letters):
        possible = {count - 1}
        if re.search(r"[^aeiouy]le[sd]?$|[td]ed$|(?:[sxz]|ch|sh|g|c)es$", letters):
            possible = {count}
        elif letters.endswith("e") and not letters.endswith(("ve", "te", "ke", "me", "ne", "se")):
            possible = {count - 1, count}
    if _APART.search(letters):
        possible |= {each + 1 for each in possible}
    # every, several, chocolate
    if re.search(r"[^aeiouy]e(?:r[aeiouy]|very)|ever|olate|iness|ered|eral", letters):
        possible |= {each - 1 for each in possible if each > 1}
    return possible


@constraint("words:last_first")
def last_first(answer: Answer) -> Outcome:
    words = [words_of(sentence) for sentence in answer.sentences]
    if len(words) < 2:
        return Outcome(False, "there are no two sentences")
    for (*_, last), (first, *_) in pairwise(words):
        if last.casefold() != first.casefold():
            return Outcome(False, f"after {last!r} the next sentence begins with {first!r}")
    return Outcome(True, "each sentence begins with the last word of the one before")


@constraint("words:paragraph_last_first")
def paragraph_last_first(answer: Answer) -> Outcome:
    paragraphs = [words_of(line) for line in answer.lines if has_word(line)]
    if not paragraphs:
        return Outcome(False, "there are no paragraphs")
    for words in paragraphs:
        if len(words) < 2 or words[0].casefold() != words[-1].casefold():
            return Outcome(False, f"a paragraph begins with {words[0]!r}, ends with {words[-1]!r}")
    return Outcome(True, "each paragraph ends with its first word")


@constraint("words:no_consecutive")
def no_consecutive(answer: Answer) -> Outcome:
    tokens = _tokens(answer.text.lower())
    if len(tokens) < 2:
        return Outcome(False, "there are no two words")
    for before, word in pairwise(tokens):
        if before[0] == word[0]:
            return Outcome(False, f"{before!r} and {word!r}")
    return Outcome(True, "no two share the first letter")


@constraint("words:keywords_specific_position")
def keywords_specific_position(answer: Answer, keyword: str, n: int, m: int) -> Outcome:
    if n < 1 or m < 1:
        raise BadConstraint("words:keywords_specific_position: 'n' and 'm' must be at least 1")
    if len(answer.sentences) < n:
        return Outcome(False, f"there are only {len(answer.sentences)} sentences")
    words = words_of(answer.sentences[n - 1])
    found = words[m - 1] if len(words) >= m else ""
    return Outcome(found.casefold() == keyword.casefold(), f"word {m} of sentence {n} is {found!r}")


@constraint("words:words_position")
def words_position(answer: Answer, keyword: str) -> Outcome:
    words = answer.folded_words
    if len(words) < 4:
        return Outcome(False, f"there are only {len(words)} words")
    passed = words[1] == words[-2] == keyword.casefold()
    return Outcome(passed, f"the second word is {words[1]!r}, the second to last {words[-2]!r}")


# --- Sentences


@constraint("sentence:keyword")
def keyword_in_sentence(answer: Answer, word: str, N: int) -> Outcome:
    if N < 1:
        raise BadConstraint("sentence:keyword: 'N' must be at least 1, got 0")
    if len(answer.sentences) < N:
        return Outcome(False, f"there are only {len(answer.sentences)} sentences")
    passed = occurrences(word, answer.sentences[N - 1]) > 0
    return Outcome(passed, f"sentence {N}: {answer.sentences[N - 1]:.60}")


@constraint("sentence:increment")
def increment(answer: Answer, small_n: int) -> Outcome:
    lengths = [len(words_of(sentence)) for sentence in answer.sentences]
    passed = len(lengths) > 1 and all(b == a + small_n for a, b in pairwise(lengths))
    shown = ", ".join(map(str, lengths[:12]))
    return Outcome(passed, f"words of the sentences: {shown}, asked {small_n} more each time")


@constraint("sentence:alliteration_increment")
def alliteration_increment(answer: Answer) -> Outcome:
    longest = []
    for sentence in answer.sentences:
        letters = [word[0].lower() for word in words_of(sentence)]
        best = run = 1
        for before, letter in pairwise(letters):
            run = run + 1 if letter == before else 1
            best = max(best, run)
        longest.append(best)
    passed = len(longest) > 1 and longest == sorted({*longest})
    return Outcome(passed, f"alliterative words in a row: {', '.join(map(str, longest[:12]))}")


@constraint("format:emoji")
def emoji(answer: Answer) -> Outcome:
    if not answer.spans:
        return Outcome(False, "there are no sentences")
    # An emoji behind the mark stands before the next sentence.
    starts = [span.start for span in answer.spans[1:]] + [len(answer.text)]
    for span, start in zip(answer.spans, starts, strict=True):
        before = span.text.rstrip(_PUNCTUATION + " \n\t")
        following = answer.text[span.end : start + 2].lstrip(_PUNCTUATION + " \n\t")
        if not (_EMOJI.match(before[-1:]) or _EMOJI.match(following)):
            return Outcome(False, f"no emoji at the end of {span.text[-40:]!r}")
    return Outcome(True, "each sentence ends with an emoji")
