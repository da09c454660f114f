"""Words and names that constraints of IFBench ask for: data."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONJUNCTIONS = _words("and but for nor or so yet")
# The list that IFBench's prompt shows.
PERSON_NAMES = _words(
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander "
    "Amelia Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella "
    "Jacob Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher Penelope "
    "Thomas Nora Andrew Aria Joseph Claire Ryan Stella Jonathan"
)
PRONOUNS = _words(
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself "
    "she her hers herself it its itself they them their theirs themselves"
)
# The stop words of English: articles, pronouns, prepositions, auxiliaries.
STOP_WORDS = PRONOUNS | _words(
    "a an the and but if or because as until while of at by for with about against between into through "
    "during before after above below to from up down in out on off over under again further then once "
    "here there when where why how all any both each few more most other some such no nor not only own "
    "same so than too very can will just don should now what which who whom this that these those am is "
    "are was were be been being have has had having do does did doing don't doesn't didn't isn't aren't "
    "wasn't weren't haven't hasn't hadn't won't wouldn't shouldn't couldn't mustn't needn't can't you're "
    "you've you'll you'd she's it's that'll should've i'm i've i'll i'd he's he'll he'd we're we've we'll "
    "we'd they're they've they'll they'd she'll she'd it'll it'd"
)
# With which an answer may begin: the base forms, and the past forms that no ending makes.
VERBS = _words(
    "accept accelerate achieve act adapt add address adjust adopt advise agree aim align allow analyse "
    "analyze announce answer apply appreciate approach arrange arrive ask assemble assess assign assist "
    "assume attach attempt attend avoid bake balance be become begin behold believe blend boil bring "
    "browse build buy calculate call capture care carry cast catch celebrate challenge change chase "
    "check choose chop clean clear click climb close collaborate collect combine come commit communicate "
    "compare complete compose compute conclude conduct confirm connect consider construct consult contact "
    "contain continue contribute convert convey cook copy correct count cover craft create cultivate cut "
    "dance deal decide declare decorate dedicate define delete deliver delve demand demonstrate depend "
    "describe deserve design determine develop devise dig discover discuss distribute dive divide do "
    "download draft draw dream dress drink drive earn eat edit elevate embark embrace emphasize employ "
    "empower enable encounter encourage engage enhance enjoy enlighten ensure enter establish evaluate "
    "examine execute exercise expand expect experience experiment explain explore express extend face "
    "feel fight figure fill find finish fix focus follow forget form foster gain gather generate get give "
    "glance go grab greet grow guess guide handle happen harness hear help highlight hire hold honor hope "
    "identify ignite imagine implement improve include increase indulge inform insert inspect inspire "
    "install integrate introduce invest investigate invite involve join journey jump keep know launch lay "
    "lead learn leave let leverage lift limit list listen live locate look lose love maintain make manage "
    "master maximize measure meet memorize mention merge minimize mix modify monitor motivate move "
    "navigate need notice nurture observe obtain offer open operate optimize order organize outline "
    "overcome own pack paint participate pass pause pay perform persuade pick picture place plan play "
    "please plunge ponder pour practice prefer prepare present press prevent print prioritize proceed "
    "produce promote propose protect prove provide publish pull purchase pursue push put query question "
    "raise reach read realize recall receive recognize recommend reconsider record reduce refer reflect "
    "refresh regard register rehearse reject relate relax release rely remain remember remind remove "
    "repeat replace report represent request require research respect respond rest restart return reveal "
    "review revise rewrite rinse rise run save savor say schedule search see seek seem select sell send "
    "separate serve set share shift shop show simplify sing sit sketch sleep slice solve sort speak "
    "specify spend split sprinkle stand start state stay step stir stop store strengthen strive structure "
    "study submit succeed suggest summarize support suppose surround survive switch take talk taste teach "
    "tell test thank think throw track train transform translate travel treat trust try turn type "
    "understand unleash unlock unveil update upload use utilize value verify view visit "
    "visualize wait wake walk want wash watch wear welcome win wish witness wonder work worry write "
    "yield is are was were am been has have had did does done went gone made took taken gave given came "
    "saw seen knew known found told left felt kept began wrote written said ran stood meant"
)
# With which no sentence begins as a verb.
NO_VERBS = STOP_WORDS - VERBS | _words(
    "certainly sure absolutely yes no okay ok hello hi dear however therefore thus although though "
    "sorry unfortunately indeed first firstly second finally while whereas one two three many several "
    "today tomorrow yesterday always never often maybe perhaps also moreover great good title step"
)
# Words that a title need not capitalise.
MINOR_WORDS = _words(
    "a an the and but or nor for so yet as at by in of off on per to up via with from into onto over "
    "than if vs"
)
_NORTHERN = (
    "Reykjavik Helsinki Oslo Tallinn Stockholm Riga Moscow Copenhagen Vilnius Minsk Dublin Berlin "
    "Amsterdam Warsaw London Brussels Kyiv Prague Luxembourg Paris Vienna Bratislava Budapest Vaduz "
    "Chisinau Bern Ljubljana Zagreb"
)
# Capitals of Europe north of 45 degrees, from north to south. IFBench's own list lacks Kyiv.
CAPITALS = tuple(_NORTHERN.split())
_COUNTRIES = (
    "Algeria|Angola|Benin|Botswana|Burkina Faso|Burundi|Cabo Verde|Cape Verde|Cameroon|"
    "Central African Republic|Chad|Comoros|Congo|Cote d'Ivoire|Ivory Coast|Djibouti|Egypt|"
    "Equatorial Guinea|Eritrea|Eswatini|Swaziland|Ethiopia|Gabon|Gambia|Ghana|Guinea|Guinea-Bissau|"
    "Kenya|Lesotho|Liberia|Libya|Madagascar|Malawi|Mali|Mauritania|Mauritius|Morocco|Mozambique|"
    "Namibia|Niger|Nigeria|Rwanda|Sao Tome and Principe|Senegal|Seychelles|Sierra Leone|Somalia|"
    "South Africa|South Sudan|Sudan|Tanzania|Togo|Tunisia|Uganda|Zambia|Zimbabwe|Western Sahara|"
    "Democratic Republic of the Congo|Republic of the Congo|Somaliland"
)
# The countries of Africa, some under two names.
AFRICA = frozenset(_COUNTRIES.casefold().split("|"))
