"""In which language a text is written: by its script, and by the words that every sentence of the
language has.

No model is needed, and nothing is drawn by chance as in langdetect. A line of another language
counts as such, so that one line in the right one does not stand for the whole.
"""

from collections import Counter
from typing import NamedTuple

import regex

from swift_rlvr.verifiers.instructions.answer import folded_words, words_of

# Language -> script and the commonest words, which few other languages of the script have.
_WORDS: dict[str, tuple[str, str]] = {
    "en": (
        "Latin",
        "a the of and to in is that it for was on are with as i be this have from or had by but not what "
        "all were we when your can said there an which she do their if will how than them been who its "
        "you he they his her my our us would could should about into has more these those",
    ),
    "de": (
        "Latin",
        "der die das und ist nicht ein eine einen einem einer den dem des mit von zu für auf im ich sie "
        "er wir es auch sich wird werden sind war haben hat wie als oder aber nur noch bei nach über "
        "aus dass kann können um durch zum zur ihr ihre wenn mehr sein",
    ),
    "fr": (
        "Latin",
        "a le la les des et est une un dans pour que qui pas sur avec au aux du ce cette il elle nous vous "
        "ils sont mais ou où plus par ne se sa ses son leur être avoir fait tout comme je tu c'est d'un "
        "d'une peut ont été entre aussi",
    ),
    "es": (
        "Latin",
        "a el la los las y es una un en para que de por con no se su sus al lo como más pero este esta son "
        "muy todo también ha del está están hay ser puede cuando sobre entre sin nos yo fue o ya le les "
        "porque desde hasta",
    ),
    "it": (
        "Latin",
        "a il lo gli e è una un di che per non con del della dei delle nel nella sono si da come più ma "
        "anche questo questa alla al ai sua suo le ci hanno essere stato può tutto dal dalla sul ho io "
        "perché loro cosa quando degli",
    ),
    "pt": (
        "Latin",
        "a o os as e é uma um de para que não com do da dos das em no na nos nas se por mais como mas ao "
        "ou seu sua são foi pelo pela também muito está ser tem isso este esta você nós eles quando à "
        "às há já até só",
    ),
    "nl": (
        "Latin",
        "de het een en van is niet in op te dat voor met zijn aan er ook maar om bij als dan nog naar "
        "uit deze dit wordt worden kan heeft hebben was door over je ik we wij ze hij of geen meer wat "
        "zo moet hun",
    ),
    "pl": (
        "Latin",
        "i w na z do nie się jest to że o jak po od dla przez są ale za tym który która które oraz być "
        "lub tak co czy już tylko może jego jej ich ten ta te przy jako także może bardzo był była",
    ),
    "cs": (
        "Latin",
        "a v na je se že s z do to o pro jako by jsou ale za od po nebo který která které tak být také "
        "jeho při až už jen jsem byl byla jeho může podle mezi ve ze",
    ),
    "sv": (
        "Latin",
        "och att det som en på är av för den med till inte har ett om vi de men kan jag var från så när "
        "eller ska där vid också nu sin efter hade över bara mycket",
    ),
    "da": (
        "Latin",
        "og at det som en på er af for den med til ikke har et om vi de men kan jeg var fra så når eller "
        "skal der ved også nu sin efter havde over kun meget blev",
    ),
    "no": (
        "Latin",
        "og at det som en på er av for den med til ikke har et om vi de men kan jeg var fra så når eller "
        "skal der ved også nå sin etter hadde over bare mye ble være",
    ),
    "fi": (
        "Latin",
        "ja on ei se että hän oli joka mutta ovat kun niin myös tai kuin sen ole voi jos vain minä sinä "
        "me he ne tämä tämän joka jotka mukaan sekä olla kanssa hyvin enemmän ollut siitä",
    ),
    "hu": (
        "Latin",
        "a az és hogy nem is egy van de ez meg csak már mint ha volt el még ki lehet vagy aki ami azt "
        "minden most nagyon lesz kell ezt szerint után",
    ),
    "ro": (
        "Latin",
        "și în de la cu pe nu este o un că să se din mai pentru sunt dar care fi ca au sau a al ale "
        "către prin după când foarte acest această despre",
    ),
    "tr": (
        "Latin",
        "ve bir bu da de için ile çok daha olarak gibi ne o var en kadar olan sonra ancak her ama ya "
        "değil veya ben sen biz onun bunu olduğu tarafından",
    ),
    "vi": (
        "Latin",
        "và của là có không được trong cho một các với người những này khi đã để đến từ ra cũng nhưng "
        "như tôi bạn chúng về vào sẽ hơn rất thì mà nhiều",
    ),
    "id": (
        "Latin",
        "dan yang di dengan untuk ini itu dari pada tidak dalam akan adalah ke oleh juga saya kami kita "
        "mereka anda bisa dapat atau karena sebagai telah ada lebih sudah tersebut",
    ),
    "sw": (
        "Latin",
        "na ya wa kwa ni katika za la cha kuwa hii hiyo kama lakini pia watu au yake wake si sana hapa "
        "huo hilo ambayo ambao kila yao wao mimi wewe sisi baada kutoka",
    ),
    "ca": (
        "Latin",
        "el la els les i és una un en per que de amb no es del al dels seu seva són més com però també "
        "aquest aquesta hi ha molt ser des fins sense està o",
    ),
    "ru": (
        "Cyrillic",
        "и в не на что он с как это по но из у за от то же для мы вы они был была было были или если бы "
        "только его её их так все когда может чтобы уже я ты она при также является",
    ),
    "uk": (
        "Cyrillic",
        "і в не на що він з як це по але із у за від та для ми ви вони був була було були або якщо би "
        "тільки його її їх так усі коли може щоб вже я ти вона при також є й до",
    ),
    "bg": (
        "Cyrillic",
        "и в не на че той с как това по но от за се са да ще е ние вие те беше или ако само него му ѝ им "
        "така всички когато може да вече аз ти тя при също със във сте ви си което която този тази бъде",
    ),
    "ar": (
        "Arabic",
        "في من على أن إلى هذا هذه التي الذي كان عن مع هو هي ما لا كما أو بعد قبل كل بين ذلك لم يمكن إن "
        "كانت ثم حيث غير عند لكن قد تم أي",
    ),
    "fa": (
        "Arabic",
        "در به از که این را با است برای آن یک خود تا بر هم نیز می شود کرد شد باید اما یا ما من او "
        "های ها هر بود دارد کند همه چه اگر",
    ),
    "ur": (
        "Arabic",
        "کے میں کی ہے اور سے کا کو ہیں یہ نے پر کہ اس ایک بھی نہیں تھا کر وہ جو ہو گیا تھے لیے ہم آپ "
        "گی گا اپنے تو یا ہوتا ہوتی",
    ),
    "hi": (
        "Devanagari",
        "है के में की और से का को हैं यह ने पर कि इस एक भी नहीं था कर वह जो हो गया थे लिए हम आप तो या "
        "होता होती अपने करने साथ",
    ),
    "mr": (
        "Devanagari",
        "आहे आणि या हे ते की व एक नाही आहेत होते होता मी तो ती त्या हा ही च्या साठी करून केले पण काही "
        "त्यांनी आपण आम्ही म्हणून झाले मध्ये अशा",
    ),
    "ne": (
        "Devanagari",
        "छ र को मा का लाई पनि यो छन् भने हो एक गर्न गरेको छैन थियो तथा लागि हामी म त्यो गर्ने भएको "
        "हुन्छ नै बाट सँग यस",
    ),
    # In these the script is enough: no other language here has it.
    "ko": ("Hangul", ""),
    "el": ("Greek", ""),
    "he": ("Hebrew", ""),
    "th": ("Thai", ""),
    "bn": ("Bengali", ""),
    "ta": ("Tamil", ""),
    "te": ("Telugu", ""),
    "kn": ("Kannada", ""),
    "ml": ("Malayalam", ""),
    "gu": ("Gujarati", ""),
    "pa": ("Gurmukhi", ""),
    "zh": ("Han", ""),
    "ja": ("Han", ""),
}
_NAMES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "portuguese": "pt",
    "dutch": "nl",
    "polish": "pl",
    "czech": "cs",
    "swedish": "sv",
    "danish": "da",
    "norwegian": "no",
    "nb": "no",
    "finnish": "fi",
    "hungarian": "hu",
    "romanian": "ro",
    "turkish": "tr",
    "vietnamese": "vi",
    "indonesian": "id",
    "swahili": "sw",
    "catalan": "ca",
    "russian": "ru",
    "ukrainian": "uk",
    "bulgarian": "bg",
    "arabic": "ar",
    "persian": "fa",
    "farsi": "fa",
    "urdu": "ur",
    "hindi": "hi",
    "marathi": "mr",
    "nepali": "ne",
    "korean": "ko",
    "greek": "el",
    "hebrew": "he",
    "thai": "th",
    "bengali": "bn",
    "tamil": "ta",
    "telugu": "te",
    "kannada": "kn",
    "malayalam": "ml",
    "gujarati": "gu",
    "punjabi": "pa",
    "chinese": "zh",
    "japanese": "ja",
}
_COMMON = {language: frozenset(words.split()) for language, (_, words) in _WORDS.items()}
_SCRIPT_OF = {language: script for language, (script, _) in _WORDS.items()}
_SCRIPTS = tuple(dict.fromkeys(_SCRIPT_OF.values()))
_LETTERS = {script: regex.compile(rf"\p{{Script={script}}}") for script in _SCRIPTS}
_KANA = regex.compile(r"[\p{Script=Hiragana}\p{Script=Katakana}]")
# What is in no language: code, addresses, tags.
_NO_LANGUAGE = regex.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|(?<![!-~])[!-~]{0,80}/[!-~]{0,80}", regex.DOTALL
)
# Of the words of an answer, so many may be in another script or in lines of another language: names
# and quotations.
_FOREIGN = 0.2
# A line is in another language if it has so many of its common words, and more than its own.
_LEAST_WORDS = 3
# A language with fewer than this share of the common words of another one is not it. Near ones, as Danish
# and Norwegian, share most of them.
_NEAR = 0.75
# Of the words, so many are common ones of the language.
_LEAST_SHARE = 0.08
# Han characters beside each kana, at most, in Japanese.
_HAN_PER_KANA = 4


class Spoken(NamedTuple):
    """Whether a text is in a language, None where nothing in it tells, and what was found."""

    passed: bool | None
    detail: str


def language_code(name: str) -> str | None:
    """The code of a language by its code or English name; None for one that is not known.

    >>> language_code("pt-BR"), language_code("German"), language_code("Klingon")
    ('pt', 'de', None)
    """
    lowered = name.strip().lower()
    code = regex.split("[-_ ]", lowered)[0]
    code = _NAMES.get(lowered, _NAMES.get(code, code))
    return code if code in _WORDS else None


def is_in(text: str, language: str) -> Spoken:
    """Whether a text is in a language, all of it but for names and quotations.

    >>> is_in("Der Hund ist nicht im Haus, und die Katze auch nicht.", "de").passed
    True
    >>> is_in("Das ist auf Deutsch. \\nBut the rest of it is in English, which was not asked for.", "de")
    Spoken(passed=False, detail='most of it is in en')
    """
    text = _NO_LANGUAGE.sub(" ", text)
    script = _SCRIPT_OF[language]
    count = 0
    in_script = 0
    for word in words_of(text):
        # A number is of every language.
        if word.isdecimal():
            continue
        count += 1
        in_script += _is_in_script(word, script)
    if not in_script:
        return Spoken(False if count else None, f"no word is in the script {script}")
    others = 1 - in_script / count
    if others > _FOREIGN:
        return Spoken(False, f"{others:.0%} of its words are not in the script {script}")
    if script == "Han":
        return _chinese_or_japanese(text, language)
    rivals = [other for other in _COMMON if _SCRIPT_OF[other] == script and _COMMON[other]]
    if not rivals:
        return Spoken(True, f"{1 - others:.0%} of its words are in the script {script}")
    return _by_common_words(text, language, rivals, count)


def _is_in_script(word: str, script: str) -> bool:
    if script == "Han" and _KANA.match(word):
        return True
    return _LETTERS[script].search(word) is not None


def _chinese_or_japanese(text: str, language: str) -> Spoken:
    kana = len(_KANA.findall(text))
    han = len(_LETTERS["Han"].findall(text))
    is_japanese = kana * _HAN_PER_KANA >= han
    # A name in kana is no Japanese.
    is_chinese = kana * _HAN_PER_KANA * 2 < han
    passed = is_japanese if language == "ja" else is_chinese
    return Spoken(passed, f"{han} Chinese characters, {kana} kana")


def _by_common_words(text: str, language: str, rivals: list[str], count: int) -> Spoken:
    total: Counter[str] = Counter()
    foreign = 0
    for line in text.splitlines():
        words = folded_words(line)
        hits = {}
        for rival in rivals:
            hits[rival] = sum(word in _COMMON[rival] for word in words)
        total.update(hits)
        best = max(rivals, key=lambda rival: (hits[rival], rival == language))
        if hits[best] >= _LEAST_WORDS and hits[best] > 2 * hits[language]:
            foreign += len(words)
    best = max(rivals, key=lambda rival: (total[rival], rival == language))
    shown = f"{total[language]} of {count} words are common ones of {language}"
    if total[best] > 1 and total[language] < _NEAR * total[best]:
        return Spoken(False, f"most of it is in {best}")
    if foreign > _FOREIGN * count:
        return Spoken(False, f"{foreign} of {count} words are in lines of another language")
    if total[language] < _LEAST_SHARE * count or not total[language]:
        return Spoken(None, f"nothing tells its language: {shown}")
    return Spoken(True, shown)
