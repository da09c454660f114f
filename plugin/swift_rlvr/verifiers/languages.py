"""How "The answer is 7." is said in other languages than English and Chinese: data, one line a
language.
"""

from typing import NamedTuple


class Words(NamedTuple):
    """The words of a language, as parts of a regular expression.

    answer: "the answer". verb: what may stand between it and the answer; a colon, or the answer
    itself where it is a number, may always follow. or_: between two answers of which one is meant.
    after: what may stand behind the answer. not_: words, no expressions, right before an answer
    that is denied; denied: right behind it. deny: words that take a statement back, or leave it
    open, wherever they stand in it; doubt: the same for scripts without spaces, or as parts of words.
    label: what announces the answer on the last line, or in the last sentence, alone, since it also
    names the result of a step.
    """

    answer: str
    verb: str
    or_: str
    after: str = ""
    not_: str = ""
    denied: str = ""
    deny: str = ""
    doubt: str = ""
    label: str = ""


LANGUAGES = {
    "ar": Words(
        "الإجابة(?: النهائية| الصحيحة)?|الجواب(?: النهائي| الصحيح)?",
        "هي|هو",
        "أو",
        not_="ليست|ليس",
        doubt="ليس|ليست|غير|ربما|أو|أكثر|أقل",
        label="إجابة|جواب|الحل|النتيجة|الناتج",
    ),
    "bg": Words(
        "отговорът", "е", "или", not_="не е|не", deny="не", label="отговор|резултат(?:ът)?"
    ),
    "bn": Words("উত্তর(?:টি)?", "হলো|হল|হচ্ছে|হবে", "বা|অথবা", denied="নয়|না", label="ফলাফল"),
    "cs, sk": Words(
        "odpověď|odpoveď",
        "je|zní|znie",
        "nebo",
        not_="není|nikoli",
        deny="ne|není",
        label="výsledek|řešení",
    ),
    "da, no": Words(
        "svar(?:et)?",
        "er|blir|bliver",
        "eller",
        not_="ikke",
        deny="ikke",
        label="resultat(?:et)?|løsning(?:en)?",
    ),
    "de": Words(
        "antwort|lösung",
        "ist|lautet|beträgt",
        "oder",
        not_="nicht|kein|keine|außer",
        deny="nicht|kein\\w*",
        label="(?:end)?ergebnis|resultat",
    ),
    "el": Words("απάντηση", "είναι", "ή", not_="δεν είναι|όχι", label="αποτέλεσμα"),
    "es": Words(
        "respuesta(?: final| correcta)?",
        "es",
        "o",
        not_="no es|no|excepto|menos",
        label="resultado(?: final)?|solución",
    ),
    "fa": Words(
        "(?:پاسخ|جواب)(?: نهایی| صحیح)?",
        "برابر است با|برابر با",
        "یا",
        " است",
        denied="نیست",
        doubt="نیست",
        label="نتیجه",
    ),
    "fi": Words("vastaus", "on", "tai", not_="ei ole|ei", label="tulos|ratkaisu"),
    "fr": Words(
        "réponse(?: finale| correcte)?",
        "est",
        "ou",
        not_="pas|sauf",
        deny="pas|non",
        label="résultat(?: final)?|solution",
    ),
    "he": Words(
        "התשובה(?: הסופית| הנכונה)?",
        "היא|הוא",
        "או",
        not_="אינה|אינו|לא",
        doubt="לא|אינו",
        label="תשובה(?: סופית)?|ה?תוצאה(?: הסופית)?|ה?פתרון",
    ),
    "hi": Words(
        "उत्तर|जवाब", "है|होगा", "या", " है| होगा| हैं", denied="नहीं", doubt="नहीं", label="हल|परिणाम"
    ),
    "hr, sr": Words(
        "odgovor|одговор",
        "je|је",
        "ili|или",
        not_="nije|није",
        deny="ne|не",
        label="rezultat|резултат",
    ),
    "hu": Words("válasz", "az|a", "vagy", not_="nem", deny="nem", label="eredmény|megoldás"),
    "id": Words(
        "jawaban(?:nya)?(?: akhir(?:nya)?| yang benar)?",
        "adalah|ialah",
        "atau",
        not_="bukan|selain",
        deny="bukan|tidak",
        label="hasil(?:nya)?",
    ),
    "it": Words(
        "risposta(?: finale| corretta)?",
        "è",
        "o",
        not_="non è|non|tranne",
        label="risultato(?: finale)?|soluzione",
    ),
    "ja": Words(
        "正解|答え|解答",
        "は",
        "または|か",
        "です|である|となります|になります",
        denied="ではない|ではありません|じゃない",
        doubt="ない|ません|違",
        label="最終回答|最終解答|回答|解|結果",
    ),
    "ko": Words(
        "정답|답",
        "은|는",
        "또는|이나",
        "입니다|이다|이에요|예요",
        denied="가 아니|이 아니",
        doubt="이상|이하|약|아니|아닙|아닌|않|못|틀|또는",
        label="(?:최종 ?)?답변|결과",
    ),
    "nl": Words(
        "antwoord",
        "is|luidt",
        "of",
        not_="niet|geen|behalve",
        deny="niet|geen",
        label="resultaat|oplossing",
    ),
    "pl": Words(
        "odpowiedź",
        "to|jest|brzmi|wynosi",
        "lub|albo",
        not_="nie jest|nie|oprócz",
        deny="nie",
        label="wynik|rozwiązanie",
    ),
    "pt": Words(
        "resposta(?: final| correta)?",
        "é",
        "ou",
        not_="não é|não|exceto",
        deny="não|nao",
        label="resultado(?: final)?|solução",
    ),
    "ro": Words(
        "răspunsul(?: final| corect)?",
        "este|e",
        "sau",
        not_="nu este|nu e|nu",
        deny="nu",
        label="răspuns(?: final)?|rezultat(?:ul)?(?: final)?",
    ),
    "ru": Words(
        "ответ",
        "это|равен|—|–|-",
        "или",
        not_="не|кроме",
        deny="не|нет|или|более|менее|больше|меньше|около|примерно|почти|если",
        label="результат|итого?|решение",
    ),
    "sv": Words(
        "svar(?:et)?",
        "är|blir",
        "eller",
        not_="inte|utom",
        deny="inte",
        label="resultat(?:et)?|lösning(?:en)?",
    ),
    "sw": Words("jibu(?: sahihi)?", "ni", "au", not_="si", label="matokeo"),
    "ta": Words("பதில்|விடை", "என்பது|=", "அல்லது", denied="அல்ல|இல்லை", doubt="அல்ல|இல்லை"),
    "te": Words("సమాధానం|జవాబు", "అంటే", "లేదా", denied="కాదు", label="ఫలితం"),
    "th": Words(
        "คำตอบ(?:ที่ถูกต้อง|สุดท้าย)?", "คือ|เป็น", "หรือ", not_="ไม่ใช่", doubt="ไม่", label="ผลลัพธ์|ตอบ"
    ),
    "tr": Words(
        "cevap|yanıt",
        "olarak",
        "veya|ya da",
        "['’]?[dt][ıiuü]r| olur| olacaktır",
        denied="değil",
        label="sonuç",
    ),
    "uk": Words(
        "відповідь",
        "це|дорівнює|—|–|-",
        "або",
        not_="не|крім",
        deny="ні",
        label="результат|розв'язок",
    ),
    "vi": Words(
        "(?:câu trả lời|đáp án|đáp số)(?: cuối cùng| đúng)?",
        "là",
        "hoặc",
        not_="không phải là|không phải|không",
        deny="không",
        label="kết quả|trả lời",
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
