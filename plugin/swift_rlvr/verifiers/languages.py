"""How an answer is announced, denied and left open: data. English and Chinese in full, as regular
expressions, and of other languages what "The answer is 7." is, one line a language.
"""

import re
from typing import NamedTuple

from swift_rlvr.verifiers.patterns import compiled_later

# --- English and Chinese

ANSWER_IS = re.compile(
    # The answer, the answer (in dollars), the answer to the question, the correct option, 答案
    r"(?:\banswers?\b(?:[ \t]*\([^()\n]{1,40}\))?(?:\s+to\s+[^\n.:=]{1,60}?)?"
    r"|\b(?:correct|right)\s+(?:option|choice)s?\b|答案|正确选项|结果|(?<!\w)答(?=\s*[:：]))"
    # ... is: 5, **: 5, #: 5, equals 5, or a heading with the answer on the lines behind it
    r"(?:(?P<verb>\s*+[*#_|\]]{0,3}\s*+(?:\b(?:(?:is|was)(?: equal to)?|are|equals|must be|would be"
    r"|(?:should|will) be(?=[\s*:$\\(]*-?[\d$\\])"
    r"|turns out to be|comes (?:out )?to)\b|:|=|：|是|为|就是|等于)"
    r"(?:\s*[:：])?\*{0,2})"
    r"|[ \t*_]*(?=\n))",
    re.IGNORECASE,
)
# ### Final Answer, **Answer:**
HEADING = re.compile(
    r"[\s#*_]*(?:the\s+)?(?:final\s+|correct\s+)?(?:answer\s*:?[*_]*)?", re.IGNORECASE
)
# "Answer: Let's check" announces an answer, and gives none
ANNOUNCES = re.compile(
    r"[ \t*_]*(?:let['’]?s\b|let (?:us|me)\b|first,|to (?:find|solve|determine|answer)\b"
    r"|we (?:need|have|know|can|start|begin)\b|i (?:need|have|will|can)\b"
    r"|here(?:['’]s| is| are)\b|step (?:\d|by)\b)",
    re.IGNORECASE,
)
# "The answer is most likely A", "the answer is exactly 5"
SURELY = re.compile(
    r"(?:most likely|clearly|simply|definitely|certainly|indeed|thus|therefore|exactly|just|only),?\s+",
    re.IGNORECASE,
)
# "Thus, (A) is correct"
LEAD_IN = re.compile(r"(?:so|thus|hence|therefore),?\s+", re.IGNORECASE)
# "(A) is the right answer"
CALLED_CORRECT = re.compile(
    r"(?:(?:the\s+)?(?:option|choice|answer)\s+)?\(?((?-i:[A-H]))\)?"
    r"\s+is\s+(?:the\s+)?(?:correct|right)(?:\s+(?:option|choice|answer|one))?"
    # 选项A正确
    r"|(?:选项|答案)?\s*((?-i:[A-H]))\s*是?(?:正确|对)的?(?:选项|答案)?",
    re.IGNORECASE,
)
# "(A) is wrong", behind another letter
CALLED_WRONG = re.compile(
    r"\(?\b([A-H])\b\)?(?:,? (?:and|or) \(?([A-H])\b\)?)?"
    r" (?:is|are) (?:wrong|incorrect|false|not (?:correct|right|true))\b"
)
# 故选B, 本题选择 A、C; neither 不选B nor 如果选B
CHOSEN = re.compile(
    r"(?<![\u4e00-\u9fff])(?:综上所述|综上|因此|因而|所以|从而|由此|故|则|本题|此题|答案|正确|我|应该|应当|应|[可得]?知)*选择?\s*[:：]?"
    r"\s*\(?([A-H](?:\s*[,、]?\s*[A-H])*)\)?\s*[。.．]?\s*$"
)
# "not 5", "isn't 5", "maybe 5", "5 but ...", "at least 5": they take back, or leave open, what
# stands beside them
DENIAL = re.compile(
    r"\b(?:not|never|\w+n['’]t|wrong|incorrect|false|neither|nor|either|unless|except|instead"
    r"|maybe|perhaps|possibly|possible answers?|candidates?|probably|might|could|cannot|unsure"
    r"|guess|but|however|rather|although|at least|at most|than|hardly|değil\w*)\b"
    r"|不是|不对|错|不知道|可能|也许",
    re.IGNORECASE,
)
OR = re.compile(r"\bor\b", re.IGNORECASE)
# "I doubt that the answer is 5", "some say the answer is 5"
ATTITUDE = re.compile(
    r"\b(?:(?<!no )(?<!without )doubt|deny|denie|disagree|disput|refut|wonder|sa(?:y|id)s?|claim|suspect|whether"
    r"|tempt|na[iï]ve)\w*\b",
    re.IGNORECASE,
)
# what takes back or leaves open an answer, in and behind it
DOUBT = re.compile(f"{DENIAL.pattern}|{OR.pattern}", re.IGNORECASE)
# ... and before it
DOUBT_BEFORE = re.compile(f"{DENIAL.pattern}|{ATTITUDE.pattern}", re.IGNORECASE)
# "Alternatively, 8", behind an answer in its line
SECOND_THOUGHT = re.compile(
    r"\b(?:wait|actually|correction|sorry|mistaken?|i mean|second thought|hmm|alternatively)\b",
    re.IGNORECASE,
)
# where a paragraph behind an answer takes it back
TAKES_BACK = re.compile(
    rf"{SECOND_THOUGHT.pattern}|\b(?:wrong|incorrect|instead|rather|maybe|perhaps|possibly|or|could"
    r"|might|unsure|not sure|should be)\b|\?",
    re.IGNORECASE,
)
# a word that is an answer itself
TRUTH = re.compile(
    r"[\s*(\[\"']*(?:true|false|yes|no|correct|incorrect)[\s*)\]\"'.]*", re.IGNORECASE
)
# Behind an answer on its line, the reason for it: "7 (since 3 + 4 = 7)", "B, because the others fail"
REASON_BEHIND = re.compile(
    r"(?:[,;(–—-]\s*)?\b(?:"
    # these may give a second answer: "7 since n is odd and 8 since ..."
    r"(?:since|because)\b(?:(?!\b(?:since|because|else|otherwise|may|might|could|assum\w*)\b)[^;])*"
    r"|as (?:required|desired|claimed|shown|expected)\b[^\d;]*"
    r"|which (?:is|equals) (?:about|approximately|roughly)\b[^;]*)\Z",
    re.IGNORECASE,
)
# right before a box: "it is not \boxed{5}"; also \text{not } in an outer one
_ENGLISH_DENIALS = (
    *("not", "not be", "not to", "not equal to", "n't", "n’t", "n't be", "n’t be", "cannot be"),
    *("never", "or is it", "anything but", "all but", "everything but", "except", "other than"),
    *("rather than", "instead of"),
)


# --- other languages


class Words(NamedTuple):
    """The words of a language, as parts of a regular expression.

    answer: "the answer". verb: what may stand between it and the answer; a colon, or the answer
    itself where it is a number, may always follow. or_: between two answers of which one is meant.
    after: what may stand behind the answer. not_: words, no expressions, right before an answer
    that is denied, and except_: before one that is left out; denied: right behind it. but: between a value
    that is denied by not_ and the one that is meant in its place, or, in a language without not_, what also
    denies it: 8ではなく7; words, no expressions. deny: words that take a statement back, or leave it
    open, wherever they stand in it; doubt: the same for scripts without spaces, or as parts of words.
    label: what announces the answer on the last line, or in the last sentence, alone, since it also
    names the result of a step. wrong: what calls an answer wrong, before or behind it.
    """

    answer: str
    verb: str
    or_: str
    after: str = ""
    not_: str = ""
    except_: str = ""
    but: str = ""
    denied: str = ""
    deny: str = ""
    doubt: str = ""
    label: str = ""
    wrong: str = ""


LANGUAGES = {
    "ar": Words(
        "الإجابة(?: النهائية| الصحيحة)?|الجواب(?: النهائي| الصحيح)?",
        "هي|هو",
        "أو",
        not_="ليست|ليس",
        doubt="ليس|ليست|غير|ربما|أو|أكثر|أقل",
        label="إجابة|جواب|الحل|النتيجة|الناتج",
        wrong="خطأ|خاطئ|خاطئة",
        but="بل",
    ),
    "bg": Words(
        "отговорът",
        "е",
        "или",
        not_="не е|не",
        deny="не",
        label="отговор|резултат(?:ът)?",
        wrong="грешно|невярно|погрешно",
        but="а",
    ),
    "bn": Words(
        "উত্তর(?:টি)?",
        "হলো|হল|হচ্ছে|হবে",
        "বা|অথবা",
        denied="নয়|না",
        label="ফলাফল",
        wrong="ভুল",
    ),
    "cs, sk": Words(
        "odpověď|odpoveď",
        "je|zní|znie",
        "nebo",
        not_="není|nikoli",
        deny="ne|není",
        label="výsledek|řešení",
        wrong="špatně|nesprávně|chybně|zle",
        but="ale|nýbrž",
    ),
    "da, no": Words(
        "svar(?:et)?",
        "er|blir|bliver",
        "eller",
        not_="ikke",
        deny="ikke",
        label="resultat(?:et)?|løsning(?:en)?",
        wrong="forkert|feil",
        but="men",
    ),
    "de": Words(
        "antwort|lösung",
        "ist|lautet|beträgt",
        "oder",
        not_="nicht|kein|keine",
        except_="außer",
        deny="nicht|kein\\w*",
        label="(?:end)?ergebnis|resultat",
        wrong="falsch|unrichtig|inkorrekt",
        but="sondern",
    ),
    "el": Words(
        "απάντηση",
        "είναι",
        "ή",
        not_="δεν είναι|όχι",
        label="αποτέλεσμα",
        wrong="λάθος|λανθασμένο",
        but="αλλά",
    ),
    "es": Words(
        "respuesta(?: final| correcta)?",
        "es",
        "o",
        not_="no es|no",
        except_="excepto|menos",
        deny="no",
        label="resultado(?: final)?|solución",
        wrong="falso|incorrect[oa]|erróne[oa]|equivocad[oa]",
        but="sino que|sino",
    ),
    "fa": Words(
        "(?:پاسخ|جواب)(?: نهایی| صحیح)?",
        "برابر است با|برابر با",
        "یا",
        " است",
        denied="نیست",
        doubt="نیست",
        label="نتیجه",
        wrong="غلط|اشتباه|نادرست",
    ),
    "fi": Words(
        "vastaus",
        "on",
        "tai",
        not_="ei ole|ei",
        label="tulos|ratkaisu",
        wrong="väärin|väärä",
        but="vaan",
    ),
    "fr": Words(
        "réponse(?: finale| correcte)?",
        "est",
        "ou",
        not_="n'est pas|n’est pas|pas|non",
        except_="sauf",
        deny="pas|non",
        label="résultat(?: final)?|solution",
        wrong="faux|incorrecte?|erronée?",
        but="mais bien|mais",
    ),
    "he": Words(
        "התשובה(?: הסופית| הנכונה)?",
        "היא|הוא",
        "או",
        not_="אינה|אינו|לא",
        doubt="לא|אינו",
        label="תשובה(?: סופית)?|ה?תוצאה(?: הסופית)?|ה?פתרון",
        wrong="שגוי|לא נכון",
        but="אלא",
    ),
    "hi": Words(
        "उत्तर|जवाब",
        "है|होगा",
        "या",
        " है| होगा| हैं",
        denied="नहीं",
        doubt="नहीं",
        label="हल|परिणाम",
        wrong="गलत",
        but="नहीं, बल्कि|नहीं बल्कि",
    ),
    "hr, sr": Words(
        "odgovor|одговор",
        "je|је",
        "ili|или",
        not_="nije|није",
        deny="ne|не",
        label="rezultat|резултат",
        wrong="netočno|pogrešno|нетачно|погрешно",
        but="već|nego",
    ),
    "hu": Words(
        "válasz",
        "az|a",
        "vagy",
        not_="nem",
        deny="nem",
        label="eredmény|megoldás",
        wrong="hibás|helytelen|rossz",
        but="hanem",
    ),
    "id": Words(
        "jawaban(?:nya)?(?: akhir(?:nya)?| yang benar)?",
        "adalah|ialah",
        "atau",
        not_="bukan",
        except_="selain",
        deny="bukan|tidak",
        label="hasil(?:nya)?",
        wrong="salah|keliru",
        but="melainkan|tetapi|tapi",
    ),
    "it": Words(
        "risposta(?: finale| corretta)?",
        "è",
        "o",
        not_="non è|non",
        except_="tranne",
        label="risultato(?: finale)?|soluzione",
        wrong="falso|sbagliat[oa]|errat[oa]",
        but="ma|bensì",
    ),
    "ja": Words(
        "正解|答え|解答",
        "は",
        "または|か",
        "です|である|となります|になります",
        denied="ではない|ではありません|じゃない",
        doubt="ない|ません|違",
        label="最終回答|最終解答|回答|解|結果",
        wrong="間違い|不正解|誤り",
        but="ではなく|でなく|じゃなく",
    ),
    "ko": Words(
        "정답|답",
        "은|는",
        "또는|이나",
        "입니다|이다|이에요|예요",
        denied="가 아니|이 아니",
        doubt="이상|이하|약|아니|아닙|아닌|않|못|틀|또는",
        label="(?:최종 ?)?답변|결과",
        wrong="틀림|틀렸|오답",
        but="이 아니라|가 아니라",
    ),
    "nl": Words(
        "antwoord",
        "is|luidt",
        "of",
        not_="niet|geen",
        except_="behalve",
        deny="niet|geen",
        label="resultaat|oplossing",
        wrong="fout|onjuist",
        but="maar",
    ),
    "pl": Words(
        "odpowiedź",
        "to|jest|brzmi|wynosi",
        "lub|albo",
        not_="nie jest|nie",
        except_="oprócz",
        deny="nie",
        label="wynik|rozwiązanie",
        wrong="błąd|błędnie|źle|fałsz",
        but="lecz|ale|a|tylko",
    ),
    "pt": Words(
        "resposta(?: final| correta)?",
        "é",
        "ou",
        not_="não é|não",
        except_="exceto",
        deny="não|nao",
        label="resultado(?: final)?|solução",
        wrong="falso|errad[oa]|incorret[oa]",
        but="mas sim|mas|e sim",
    ),
    "ro": Words(
        "răspunsul(?: final| corect)?",
        "este|e",
        "sau",
        not_="nu este|nu e|nu",
        deny="nu",
        label="răspuns(?: final)?|rezultat(?:ul)?(?: final)?",
        wrong="greșit|incorect",
        but="ci",
    ),
    "ru": Words(
        "ответ",
        "это|равен|—|–|-",
        "или",
        not_="не",
        except_="кроме",
        deny="не|нет|или|более|менее|больше|меньше|около|примерно|почти|если",
        label="результат|итого?|решение",
        wrong="неверно|неправильно|ошибка",
        but="а",
    ),
    "sv": Words(
        "svar(?:et)?",
        "är|blir",
        "eller",
        not_="inte",
        except_="utom",
        deny="inte",
        label="resultat(?:et)?|lösning(?:en)?",
        wrong="felaktigt|fel(?=[:!.])",
        but="utan",
    ),
    "sw": Words(
        "jibu(?: sahihi)?",
        "ni",
        "au",
        not_="si",
        label="matokeo",
        wrong="si sahihi|makosa",
        but="bali",
    ),
    "ta": Words(
        "பதில்|விடை",
        "என்பது|=",
        "அல்லது",
        denied="அல்ல|இல்லை",
        doubt="அல்ல|இல்லை",
        wrong="தவறு",
    ),
    "te": Words(
        "సమాధానం|జవాబు",
        "అంటే",
        "లేదా",
        denied="కాదు",
        label="ఫలితం",
        wrong="తప్పు",
    ),
    "th": Words(
        "คำตอบ(?:ที่ถูกต้อง|สุดท้าย)?",
        "คือ|เป็น",
        "หรือ",
        not_="ไม่ใช่",
        doubt="ไม่",
        label="ผลลัพธ์|ตอบ",
        wrong="ผิด",
        but="แต่เป็น|แต่",
    ),
    "tr": Words(
        "cevap|yanıt",
        "olarak",
        "veya|ya da",
        "['’]?[dt][ıiuü]r| olur| olacaktır",
        denied="değil",
        label="sonuç",
        wrong="yanlış|hatalı",
        but="değil",
    ),
    "uk": Words(
        "відповідь",
        "це|дорівнює|—|–|-",
        "або",
        not_="не",
        except_="крім",
        deny="ні",
        label="результат|розв'язок",
        wrong="неправильно|хибно|помилка",
        but="а",
    ),
    "vi": Words(
        "(?:câu trả lời|đáp án|đáp số)(?: cuối cùng| đúng)?",
        "là",
        "hoặc",
        not_="không phải là|không phải|không",
        deny="không",
        label="kết quả|trả lời",
        wrong="không đúng|sai(?=[:!.])",
        but="mà là|mà",
    ),
}
# The same of Chinese: it also gives bounds and parts behind a number, 5以上 and 5倍.
CHINESE_DOUBT = (
    "不|没|非|或|约|約|几|多于|最多|至多|至少|以上|以下|以内|左右|上下|超过"
    "|少于|大于|小于|倍|半|分之|错|可能|也许|如果"
)


def words_of(field: str, latin: bool | None = None) -> str:
    """The words of all languages for a field, as one alternative of a regular expression.

    latin: only those in Latin letters, or only the others.
    """
    words = []
    for language in LANGUAGES.values():
        for word in filter(None, getattr(language, field).split("|")):
            # Greek, the first other alphabet, begins here.
            if latin is None or latin == (word[0] < "\u0370"):
                words.append(word)
    return "|".join(dict.fromkeys(words))


def announcing(labels: bool = False) -> str:
    """What announces an answer in these languages, as one alternative of a regular expression; a
    number may stand right behind the words for "the answer". labels: also those of a last line.
    """
    announced = []
    for words in LANGUAGES.values():
        verb = _as_word(words.verb)
        announced.append(rf"(?:{words.answer})\s*\*{{0,2}}\s*(?:[:：=]|{verb}|(?=[-$\\]?\d))")
        if labels and words.label:
            announced.append(rf"(?:{words.label})\s*\*{{0,2}}\s*[:：]")
    return "|".join(announced)


def resulting() -> str:
    """What states a result in these languages, "Ergebnis ist", as one alternative of a regular
    expression; a number that is all there is may stand right behind the words for "the result".
    """
    stated = []
    for words in LANGUAGES.values():
        if words.label:
            number_alone = rf"(?=[-$]?\d[\d.,]*\$?(?:{words.after})?\W*\Z)"
            stated.append(rf"(?:{words.label})\s*(?:=|{_as_word(words.verb)}|{number_alone})")
    return "|".join(stated)


def _as_word(verb: str) -> str:
    """A verb, which is a word of its own in a script with spaces."""
    return rf"(?:{verb})(?:(?<=[ぁ-ヿ฀-๿가-힣])|(?![^\W_]))"


# --- all of them as expressions

_NOT = (
    *_ENGLISH_DENIALS,
    "不是",
    "并非",
    "不等于",
    "不会是",
    *words_of("not_").split("|"),
    *words_of("except_").split("|"),
)
# From Thai on, scripts have no spaces between words; others have, but for "isn't".
_JOINED_DENIALS = [word for word in _NOT if word[:3] in ("n't", "n’t") or word >= "\u0e00"]
DENIED_AT_END = re.compile(
    # "it is not", but not "the knot"
    rf"(?:{'|'.join(_JOINED_DENIALS)}|(?<![^\W_])(?:{'|'.join(_NOT)})"
    # "I doubt that it is", but not "no doubt"
    r"|(?<!no )(?<!without )\bdoubt(?: that)?(?: (?:it|the answer) is)?)\Z"
)
# the last words that one of these may be, which are soon looked for
DENIALS = (*_NOT, "doubt", "doubt that", "doubt it is", "that it is", "the answer is")
# all of a sentence before a box, in lower case: "wrong:", "a common wrong answer is"
CALLED_WRONG_BEFORE = re.compile(
    r"\W*(?:(?:an?|the|one|common|typical)\s+){0,3}"
    rf"(?:(?:wrong|incorrect|tempting|na[iï]ve|{words_of('wrong')})(?:\s+(?:answer|result|value|option|choice|guess))?"
    r"|(?:common|typical|usual)\s+(?:mistake|error))"
    r"(?:\s+(?:is|was|would be))?(?:\s+to\s+\w+)?\W*"
)
# ... or of a mistake: "if I had forgotten the sign, I would get", "a careless student would get", "we would
# have gotten". Of people in a story the same may be the question: "if Tom had forgotten his 3 apples, he
# would have"; and "if I made no mistake, it would be" tells of none.
OF_MISTAKE = re.compile(
    r"(?:\b(?:if|had)\b.{0,20}?\b(?:i|we|someone|somebody)\b(?:(?!\b(?:no|not)\b|n['’]t).){0,30}?"
    r"\b(?:forg[eo]t(?:ten)?|overlook(?:ed)?|misread|mis(?:taken|count|calculat|interpret|appl)\w*|careless(?:ly)?"
    r"|(?:wrong|incorrect|erroneous)ly|made (?:the|a|an|that|this) (?:\w+ )?(?:mistake|error|slip)"
    r"|(?:ignor|dropp|skipp|miss|omitt|neglect)ed (?:the|this|that|a) (?:\w+ )?"
    r"(?:sign|minus|factor|term|step|condition|case|constraint|constant|units?|exponent|square|restriction))\b"
    r"|\bby (?:mistake\b|(?:mistaken|wrong|incorrect|careless)ly\b|forgetting\b)"
    r"|\bcareless (?:student|solver|reader|person|calculation|approach)\b"
    r"|\b(?:someone|somebody|anyone|those|students?|people) who (?:forget|overlook|misread)s?\b)"
    r".*\bwould\b"
    r"|\b(?:i|we|you) would(?: have|['’]ve) (?:gotten|got|obtained|computed|concluded|answered)\W*\Z",
    re.IGNORECASE,
)
# ... and right behind it: "\boxed{5} is wrong", "\boxed{5}?"; not "\boxed{5}, not 6"
BOX_IS_WRONG = re.compile(
    r"[ \t$\\)}\].,*(]*"
    # \boxed{5}?
    r"(?:\?"
    # ... is wrong, isn't it
    r"|(?:is|was|are|were|would\s+be|seems|looks)\s+(?:also\s+|clearly\s+)?"
    r"(?:not|wrong|incorrect|false|impossible|invalid|excluded|rejected)\b"
    r"|isn['’]t\b"
    # ... or not, maybe
    r"|or\s+(?:not|is\s+it|maybe|perhaps)\b"
    r"|(?:maybe|perhaps)\b"
    # ... not, but neither "not 6" nor "not \(6\)"
    r"|not\b(?!\s+[$\\(]*-?[\d$\\])"
    # ... ではない
    rf"|{words_of('denied')}"
    # ist falsch, 错, ❌
    rf"|(?:{words_of('verb')})\s+(?:{words_of('wrong')})(?![^\W_])|错|❌|✗"
    # (wrong); but not "Incorrect options: A, C"
    rf"|(?:wrong|incorrect|{words_of('wrong')})\s*(?:[)!.]|\Z))",
    re.IGNORECASE,
)
# Right behind an answer, these take it back: "Wait, that is wrong", "I made a mistake" ...
_NOES = "no|nope|non|nein|não|нет|nee|nej|nie|아니"
_INTERJECTION = (
    r"(?:wait|oops|oh no|hmm+|hold on|sorry|scratch that|actually|correction|on second thoughts?"
    rf"|(?:{_NOES})(?=\s*[,.:;!—–-]\s*\S|\s+wait\b)|ой|等等|等一下|抱歉|哦|不对(?=[，。！])(?!。\s*\Z)|不(?=，)|いや|いいえ)"
)
_NO_LETTERS = r"[\s$\\()}\].,*!:;—–。，、！…-]*"
TAKEN_BACK = re.compile(
    rf"{_NO_LETTERS}(?:(?:{_INTERJECTION}|but|however){_NO_LETTERS})*+"
    r"(?:(?:which|that|this|it|(?:the|this|my|that)(?: above)? (?:answer|result|value)(?: above)?)"
    r"(?:\s+(?:is|was|looks|seems)|['’]s)?\s+(?:also |clearly |actually )?"
    r"(?:(?:not|cannot be|(?:is|was)n['’]t|can['’]t be) (?:right|correct|true|the answer)"
    r"|wrong\b|incorrect|mistaken)"
    r"|(?:i|we)(?: have|['’]ve)? made (?:an?|some) (?:\w+ )?(?:mistake|error|slip)"
    # ... 错了, das ist falsch; but not "Falsch sind A und C"
    r"|错了|算错|不正确(?!的)"
    rf"|(?:(?:das ist|c['’]est|è|é|es|это)\s+)?(?:{words_of('wrong')})(?=\s*[.!,。！，]|\s*\Z)"
    # "No."
    rf"|(?:{_NOES}|不对)[.!。！]?\s*\Z)",
    re.IGNORECASE,
)
# ... where the value is another one: "No, it is 8", "Correction: 8", "It should be 8"
_OTHER = r"-?\.?\d[\d.,/]*+|\\(?:frac|sqrt)[^\s$;()*]*+|[A-H](?![A-Za-z])"
CORRECTED = re.compile(
    rf"{_NO_LETTERS}(?:(?:{_INTERJECTION}{_NO_LETTERS})++"
    r"(?:(?:it(?:['’]s| is| must be| should be)|i think(?: it(?:['’]s| is))?|i mean(?:t)?|make that|that['’]s"
    # ... in Spanish, French, German, Portuguese, Italian and Chinese
    r"|es(?: ist)?|c['’]est|é|è|(?:答案)?(?:应该?)?[是为]"
    rf"|the (?:\w+ ){{0,3}}(?:is|should be))\s*:?[\s$\\(*]*(?P<other>{_OTHER})"
    # alone, with a unit at most: "Wait, 8 * 2" corrects nothing
    rf"|[\s$\\(*]*(?P<alone>{_OTHER})[\s$\\)*]*(?:[^\W\d]+\s?){{0,2}}[.!。]?\s*(?:\n|\Z))"
    rf"|(?:it|that|this) should (?:be|have been)\s*:?[\s$\\(*]*(?P<due>{_OTHER}))",
    re.IGNORECASE,
)
# Right behind an answer, these give the one of another case, which only the question could tell apart
_END_OF_OTHER = rf"[\s$\\(*]*(?P<{{name}}>{_OTHER})[\s$\\)*]*"
ANOTHER_CASE = re.compile(
    r"[\s$\\)}\].,;*(–—-]*(?:"
    # \boxed{7} when n is even and 8 when n is odd
    r"(?P<condition>when|if|for|with|without|in)\b[^.\n]{1,60}?(?:[,;]|\b(?:and|but))(?: it (?:is|would be))?"
    rf"{_END_OF_OTHER.format(name='also')}\b(?P=condition)\b"
    # \boxed{7}, but with replacement 8; \boxed{7}, otherwise 8; not "but the height is 8"
    r"|(?:otherwise|else|alternatively|but\s+(?:with|without|if|when|in|for|under|could|might|may"
    r"|(?:it|the answer)\s+(?:could|might|may|would))\b|if\b[^.,\n]{1,40},)(?:(?!\bnot\b|n['’]t)[^.\n=\d$\\]){0,50}"
    rf"{_END_OF_OTHER.format(name='instead')}(?:[).!。]|\n|\Z))",
    re.IGNORECASE,
)
# "7, not 8" and "not 8 but 7" state 7, and tell it from another value
_VALUE = r"(?:-?\.?\d+(?:[.,/]\d+)*+|\\(?:frac|sqrt)[^\s$;()*]*+|(?-i:[A-H])(?![A-Za-z])|\\boxed\{[^{}]*\})"
_ANOTHER = rf"[$\\(*]*(?P<other>{_VALUE})[$\\)*]*(?: [a-z]+)?"
VALUE_NOT_ANOTHER = re.compile(
    # behind words that state it: a bound, x > 7, may leave out a value
    r"(?P<kept>(?:\A|[\n:=#*]|answer>|\b(?:is|was|be|are|equals|answer|gets?|gives?|has|have)\b|[是为])[\s$\\(*]*"
    rf"(?P<stated>{_VALUE})[$\\)*]*(?: [a-z]+)?)"
    r"[\s,;.!，；—–]*(?P<bracket>[(（])?(?:(?:and |but )?(?:not|rather than|instead of) |而?不是|并非)"
    rf"{_ANOTHER}"
    # (not 8, which is even); , not 8, because it is even
    r"(?(bracket)[^()（）\d\n]*[)）]|(?:,? (?:because|since|as) [^.\d\n]*|(?=\s*(?:[.,;!，。<\n]|\Z))))",
    re.IGNORECASE,
)
# where one of these two may stand
VALUE_IS_DENIED = re.compile(
    rf"(?:not|Not|n't|n’t|rather than|instead of|不是|并非) ?[$\\(*]*{_VALUE}"
)
NOT_ANOTHER_BUT = re.compile(
    rf"(?:\b(?P<kept>is|was)n['’]t|\bnot|不是|并非)\s*{_ANOTHER}\s*[,;.，；。]?\s*"
    r"(?:\b(?:but(?: rather)?|rather|it is|it['’]s)\s|而)\s*"
    rf"(?=[$\\(*是]*(?P<stated>{_VALUE}))",
    re.IGNORECASE,
)


class Contrast(NamedTuple):
    """How a language tells a value from another: "no es 8, sino 7" and "7, no 8".

    signs: one of them stands in every such text. is_denied: what such a text has, and few others have.
    forms: the ways to say it, with groups as in `NOT_ANOTHER_BUT` and `VALUE_NOT_ANOTHER`.
    """

    signs: tuple[str, ...]
    is_denied: re.Pattern[str]
    forms: tuple[re.Pattern[str], ...]


def _contrast(words: Words) -> Contrast:
    # From Thai on, scripts have no spaces between words.
    is_spaced = words.not_ < "\u0e00"
    begins = r"(?<![^\W_])" if is_spaced else ""
    denied = rf"{begins}(?:{words.not_})\s*" if words.not_ else ""
    not_but = (
        rf"(?P<kept>){denied}{_ANOTHER}\s*[,;，、]?\s*(?:{words.but})[\s,、]*"
        rf"(?=[$\\(*]*(?P<stated>{_VALUE}))"
    )
    if not words.not_:
        form = compiled_later(not_but, re.IGNORECASE)
        return Contrast(tuple(words.but.split("|")), form, (form,))

    # behind a colon alone "7, no 8" may be English, and a correction
    labels = "|".join(filter(None, (words.answer, words.label)))
    not_another = (
        rf"(?P<kept>(?<![^\W_])(?:(?:{labels})\s*[:：=]|(?:{words.verb}))[\s$\\(*]*(?P<stated>{_VALUE})[$\\)*]*)"
        rf"[\s,;—–]*(?:(?:y|et|e|а|und|en|a|och|dan|và)\s)?(?:{words.not_})\s{_ANOTHER}(?=\s*(?:[.,;!<\n]|\Z))"
    )
    return Contrast(
        tuple(f"{word} " if is_spaced else word for word in words.not_.split("|")),
        compiled_later(rf"{denied}[$\\(*]*{_VALUE}", re.IGNORECASE),
        (compiled_later(not_but, re.IGNORECASE), compiled_later(not_another, re.IGNORECASE)),
    )


CONTRASTS = [_contrast(words) for words in LANGUAGES.values() if words.but]
# Right before a block of code or data, in lower case: "this query would be wrong", "do not use"
_WRONG = (
    r"(?:wrong|incorrect|invalid"
    r"|not (?:right|correct|valid|true|what|my answer|an? |the (?:answer|right|correct|solution|query)))"
)
_THING = r"(?:query|sql|statement|code|json|object|box|call|answer|solution|attempt|example|output)"
BLOCK_WAS_DENIED = re.compile(
    # ... not "that was wrong", of what stood before
    rf"\b(?:is|be|are|seems|looks) (?:also |clearly |simply |all )?{_WRONG}[\w ]{{0,10}}\Z"
    # an incorrect query would be, this wrong query; not "I mend the wrong query"
    r"|(?:\A|[.!?:,] ?|\b(?:an?|this|that|following|such) )(?:the )?(?:wrong|incorrect|false|invalid)"
    rf"(?: {_THING})?(?: (?:would be|is))?\Z"
    r"|(?:\bnot|\bnever|n['’]t) (?:to )?(?:use|run|write|call|answer|submit|give|choose|be)"
    r"(?: (?:this|it|with))?\Z"
)
# ... and right behind it: "is wrong", "no, that query isn't right", "or not"
BLOCK_IS_WRONG = re.compile(
    rf"(?:(?:no|wait|hmm|but|sorry|actually),? )*(?:(?:this|that|it|which|the)(?: above)?(?: {_THING})? )?"
    rf"(?:(?:is|was|are|would be|seems|looks) (?:also |clearly |simply |all )?{_WRONG}\b"
    r"|isn['’]t (?:right|correct|valid|true|what|it\b|the (?:answer|right|correct)))"
    r"|or (?:not|is it|maybe|perhaps)\b|(?:maybe|perhaps)\b\W*\Z|\?"
    rf"|(?:{words_of('denied')})"
)
# The same in other languages. Kana before it are particles: の答えは.
ANSWER_IS_OF_OTHERS = compiled_later(
    rf"(?<![^\W\d_ぁ-ヿ])(?:{announcing()})(?:\s*[:：])?\*{{0,2}}", re.IGNORECASE
)
# Ergebnis: 5, **Result:** 5, or a heading with the answer on the line below
LABEL_OF_LAST_LINE = re.compile(
    rf"(?:\A|\n)[ \t#*_]*(?:(?:final )?result|{words_of('label')})[ \t*_]*(?:[:：][*_]*|(?=\n))(?P<answer>\s*[^\n]+)\Z",
    re.IGNORECASE,
)
# Das Ergebnis ist 5, in the last sentence
RESULT = compiled_later(rf"(?<![^\W\d_ぁ-ヿ])(?:{resulting()})", re.IGNORECASE)
# between two answers
OR_OF_OTHERS = re.compile(
    # in scripts without spaces a word has no ends: A或B
    "或|还是|または|หรือ|(?<![^\\W_])(?:"
    + "|".join(words.or_ for words in LANGUAGES.values())
    + ")(?![^\\W_])",
    re.IGNORECASE,
)
# behind the answer: 5です
AFTER_OF_OTHERS = re.compile(
    "(?:" + "|".join(words.after for words in LANGUAGES.values() if words.after) + r")\s*\Z",
    re.IGNORECASE,
)
# before an answer, in its sentence
DENIAL_OF_OTHERS = re.compile(
    rf"(?<![^\W_])(?:{words_of('deny')}|{words_of('wrong')})(?![^\W_])|{words_of('doubt')}",
    re.IGNORECASE,
)
