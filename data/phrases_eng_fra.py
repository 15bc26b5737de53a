"""Words and phrases in English and French at once, with their links.

Each function here builds the English and the French of one thing together, so
which word translates which is known.  Every French token carries the list of
English tokens it translates.  Elision (l', n', qu') and contraction (du, aux)
come last, in one pass over the French tokens that keeps those lists.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
import sys
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lexicon_eng_fra as lexicon

VOWELS = "aeiouyàâéèêëîïôöùûœ"


class Pair(NamedTuple):
    """One line of the corpus."""

    english: str
    french: str
    alignment: str
    english_tags: str
    french_tags: str


# -- Tokens and phrases -------------------------------------------------------


@dataclass(eq=False, slots=True)
class Token:
    """A word, its tag and, if French, the English tokens it translates."""

    text: str
    tag: str
    sources: list = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Phrase:
    """The same thing said in two languages.

    French clitics are kept apart, as they stand before their verb.
    """

    english: list = field(default_factory=list)
    french: list = field(default_factory=list)
    clitics: list = field(default_factory=list)

    def __add__(self, other):
        return Phrase(
            self.english + other.english,
            self.french + other.french,
            self.clitics + other.clitics,
        )

    def replace(self, phrase):
        """Become another phrase, but keep everything else."""
        self.english, self.french = phrase.english, phrase.french


def tokens(text, tags, sources=()):
    """Tokens for a text and its tags, all with the same sources."""
    pairs = zip(text.split(), tags.split(), strict=True)
    return [Token(text, tag, list(sources)) for text, tag in pairs]


def linked(english, english_tags, french, french_tags, links=None):
    """A phrase with the given links, by default every word with every word."""
    source = tokens(english, english_tags)
    target = tokens(french, french_tags, () if links else source)
    for link in links.split() if links else ():
        i, j = link.split("-")
        target[int(j)].sources.append(source[int(i)])
    return Phrase(source, target)


def word(english, french, tag, french_tag=None):
    """One English word and one French word, usually of the same tag."""
    source = Token(english, tag)
    return Phrase([source], [Token(french, french_tag or tag, [source])])


def mark(sign):
    """A punctuation mark."""
    return word(sign, sign, "PUNCT")


def join(*phrases):
    """Phrases one after the other, in the same order in both languages."""
    return sum(phrases, Phrase())


def starts_with_vowel(text):
    """Whether a French word takes elision before it."""
    if text in lexicon.ASPIRATED:
        return False
    return text[0] in VOWELS or text[0] == "h"


def elide(french):
    """Apply elision: le homme -> l' homme, sa amie -> son amie."""
    for current, following in zip(french, french[1:], strict=False):
        if current.text == "si" and following.text in ("il", "ils"):
            current.text = "s'"
        elif not starts_with_vowel(following.text):
            continue
        elif current.text == "ce" and current.tag == "PRON":
            current.text = "c'"
        elif current.text in lexicon.ELIDED:
            current.text = lexicon.ELIDED[current.text]
        elif current.text in lexicon.BEFORE_VOWEL and current.tag == "DET":
            current.text = lexicon.BEFORE_VOWEL[current.text]


def contract(french):
    """Merge de + le -> du, à + les -> aux, and so on; keep all links."""
    result = []
    for token in french:
        before = result[-1] if result else None
        merged = before and lexicon.CONTRACTED.get((before.text, token.text))
        if merged and token.tag == "DET":
            both = before.sources + token.sources
            result[-1] = Token(merged, before.tag, both)
        else:
            result.append(token)
    return result


def choose_an(english):
    """Turn "a" into "an" before a vowel."""
    for current, following in zip(english, english[1:], strict=False):
        if current.text == "a" and following.text[0] in "aeiou":
            current.text = "an"


def render(phrase):
    """The finished line for a sentence."""
    english = phrase.english
    choose_an(english)
    elide(phrase.french)
    french = contract(phrase.french)
    place = {id(token): i for i, token in enumerate(english)}
    links = []
    for j, token in enumerate(french):
        links += {(place[id(source)], j): 0 for source in token.sources}
    return Pair(
        " ".join(token.text for token in english),
        " ".join(token.text for token in french),
        " ".join(f"{i}-{j}" for i, j in sorted(links)),
        " ".join(token.tag for token in english),
        " ".join(token.tag for token in french),
    )


# -- Noun phrases and pronouns ------------------------------------------------


@dataclass(eq=False, slots=True)
class NounPhrase(Phrase):
    """A phrase that can be a subject or an object, with its agreement."""

    gender: str = "m"
    plural: bool = False
    person: str = "he"
    human: bool = True
    labels: tuple = ("person",)


def nominal(phrase, *agreement):
    """Make a noun phrase of a phrase."""
    return NounPhrase(phrase.english, phrase.french, [], *agreement)


def pronoun_name(antecedent):
    """The English pronoun for a noun phrase: i, you, he, she, it or they."""
    if antecedent.person != "he":
        return antecedent.person
    if antecedent.human:
        return "she" if antecedent.gender == "f" else "he"
    return "it"


def pronoun(name):
    """A subject pronoun with no antecedent in the sentence."""
    french, *agreement = lexicon.SUBJECT_PRONOUNS[name]
    return nominal(word(name, french, "PRON"), *agreement)


def subject_pronoun(antecedent):
    """The subject pronoun that takes up a noun phrase."""
    if antecedent.person in ("i", "you"):
        return pronoun(antecedent.person)
    french = "elle" if antecedent.gender == "f" else "il"
    french += "s" if antecedent.plural else ""
    again = replace(antecedent)
    again.replace(word(pronoun_name(antecedent), french, "PRON"))
    return again


def others(subject):
    """The pronouns that can stand for somebody other than the subject."""
    names = [name for name in lexicon.OBJECT_PRONOUNS if name != subject.person]
    if subject.plural and "they" in names:
        names.remove("they")
    return names


def object_pronoun(antecedent):
    """The direct object pronoun that takes up a noun phrase."""
    name = pronoun_name(antecedent)
    if name == "it":
        english, french = "it", "la" if antecedent.gender == "f" else "le"
    else:
        english, french, _ = lexicon.OBJECT_PRONOUNS[name]
    source = tokens(english, "PRON")
    return Phrase(source, [], tokens(french, "PRON", source))


def person_pronoun(name, indirect=False, to=False):
    """A pronoun for a person as object; `to` writes "to him" for lui."""
    english, direct, dative = lexicon.OBJECT_PRONOUNS[name]
    source = tokens("to " + english, "ADP PRON")[not to :]
    return Phrase(
        source, [], tokens(dative if indirect else direct, "PRON", source)
    )


def adjective_word(adjective, gender, plural, following=""):
    """An adjective that agrees; `following` is the French word after it."""
    form = gender + ("p" if plural else "")
    if form == "m" and following and starts_with_vowel(following):
        form = "vowel"
    return word(adjective.english, adjective.forms[form], "ADJ")


def articles(gender, plural, masculine, feminine, both):
    """Pick the French form for a gender and a number."""
    if plural:
        return both
    return feminine if gender == "f" else masculine


def partitive(gender, plural, adjective_first, sources=()):
    """The French article for some or several: du, de la, des, de."""
    if plural:
        return tokens("de" if adjective_first else "des", "DET", sources)
    text = "de " + articles(gender, plural, "le", "la", "")
    return tokens(text, "DET DET", sources)


def determiner(name, gender, plural, mode="", adjective_first=False):
    """A determiner; mode "de" follows a negation, "generic" a verb of liking.

    The name "" is the English bare noun; mode "after de" says that the French
    preposition de comes just before and swallows the article.
    """
    source = tokens(name, " ".join(["DET"] * len(name.split())))
    if name in ("", "some", "any", "a") and mode == "de":
        return Phrase(source, tokens("de", "DET", source))
    if name in ("", "some", "any"):
        if mode == "after de":
            return Phrase(source)
        if mode == "generic":
            text = articles(gender, plural, "le", "la", "les")
            return Phrase(source, tokens(text, "DET", source))
        french = partitive(gender, plural, adjective_first, source)
        return Phrase(source, french)
    if name == "many":
        return linked("many", "ADJ", "beaucoup de", "ADV ADP")
    if name in lexicon.NUMBERS:
        return word(name, lexicon.NUMBERS[name], "NUM")
    if name == "all the":
        every = "toutes" if gender == "f" else "tous"
        return linked(name, "DET DET", every + " les", "DET DET", "0-0 1-1")
    french = articles(gender, plural, *lexicon.DETERMINERS[name])
    return word(name, french, "DET")


def noun_phrase(noun, plural, name, adjectives=(), mode=""):
    """Determiner, adjectives and noun, each language in its own order."""
    gender = noun.gender
    english = noun.plural if plural else noun.singular
    french = noun.french_plural if plural else noun.french
    head = word(english, french, "NOUN")
    before = Phrase()
    after = Phrase()
    for adjective in adjectives:
        if adjective.before:
            before = adjective_word(adjective, gender, plural, french)
        else:
            after = adjective_word(adjective, gender, plural)
    start = determiner(name, gender, plural, mode, bool(before.french))
    phrase = Phrase(
        start.english + before.english + after.english + head.english,
        start.french + before.french + head.french + after.french,
    )
    human = bool({"person", "kin"} & set(noun.labels))
    person = "they" if plural else "he"
    labels = (*noun.labels, noun.singular)
    return nominal(phrase, gender, plural, person, human, labels)


def coordinate(first, second):
    """Two noun phrases as one: plural, feminine only if both are."""
    gender = "f" if first.gender == second.gender == "f" else "m"
    phrase = join(first, conjunction("and"), second)
    child = {"child"} & {*first.labels, *second.labels}
    return nominal(phrase, gender, True, "they", True, ("person", *child))


def conjunction(name):
    """A conjunction; "parce que" and "pendant que" are two tokens."""
    french, tag = lexicon.CONJUNCTIONS[name]
    return linked(name, tag, french, " ".join([tag] * len(french.split())))


# -- Verbs --------------------------------------------------------------------


class Style(NamedTuple):
    """How a verb is used."""

    tense: str = "simple"  # simple, progressive, future, past
    negation: str = ""  # "", not, never
    modal: tuple = ()  # a line of the modal table, split
    frequency: str = ""  # "", often, always, sometimes


@dataclass(eq=False, slots=True)
class VerbGroup:
    """The words of a verb; `fronted` is what a question puts first.

    French: ne, clitics, finite verb, after (pas), lead, infinitive, tail;
    clitics stand before the infinitive if there is one.
    """

    fronted: list = field(default_factory=list)
    english: list = field(default_factory=list)
    ne: list = field(default_factory=list)
    finite: list = field(default_factory=list)
    after: list = field(default_factory=list)
    lead: list = field(default_factory=list)
    infinitive: list = field(default_factory=list)
    tail: list = field(default_factory=list)


PERSONS = ("i", "he", "you", "they")
WILL = {"he": "will", "they": "will_they"}


def negate(style):
    """English negation, French ne and what follows the French verb."""
    if not style.negation:
        return [], [], []
    tag = "PART" if style.negation == "not" else "ADV"
    source = tokens(style.negation, tag)
    second = "pas" if style.negation == "not" else "jamais"
    return source, tokens("ne", "ADV", source), tokens(second, "ADV", source)


def auxiliary(person, style, question):
    """The English auxiliary, if there is one."""
    if style.tense == "progressive":
        return tokens(lexicon.BE[person], "AUX")
    if style.tense == "future":
        return tokens("will", "AUX")
    if style.negation == "not" or question:
        return tokens("does" if person == "he" else "do", "AUX")
    return []


def english_verb(verb, form):
    """The English verb in some form, with its particle."""
    particle = tokens(verb.particle, "ADP") if verb.particle else []
    return tokens(getattr(verb, form), "VERB") + particle


def verb_group(verb, person, style, question=False):
    """Conjugate a verb in both languages."""
    if style.modal:
        return modal_group(verb, person, style, question)
    fronted = auxiliary(person, style, question)
    form = "third" if person == "he" and not fronted else "base"
    main = english_verb(verb, "ing" if style.tense == "progressive" else form)
    is_do = question and style.tense == "simple"
    denial, ne, second = negate(style)
    often = Phrase()
    if style.frequency:
        often = word(style.frequency, lexicon.FREQUENCY[style.frequency], "ADV")
    french = verb.french[WILL[person] if style.tense == "future" else person]
    return VerbGroup(
        fronted,
        denial + often.english + main,
        ne,
        tokens(french, "VERB", main if is_do else fronted + main),
        second + often.french,
        tail=tokens(verb.tail, lexicon.TAIL_TAGS[verb.tail], main),
    )


def modal_group(verb, person, style, question):
    """A modal verb with its infinitive: can eat, wants to eat."""
    base, third, *forms, _ = style.modal
    base, _, to = base.partition("+")
    group = infinitive(verb, style.modal)
    denial, group.ne, group.after = negate(style)
    if not to:
        fronted = finite = tokens(base, "AUX")
        english = []
    else:
        fronted = auxiliary(person, style, question)
        text = third if person == "he" and not fronted else base
        english = tokens(text, "VERB")
        finite = english if question else fronted + english
    group.fronted = fronted
    group.english = denial + english + group.english
    group.finite = tokens(
        dict(zip(PERSONS, forms, strict=True))[person], "VERB", finite
    )
    return group


def infinitive(verb, modal):
    """An infinitive as it follows a modal: eat, to eat."""
    to = tokens("to", "PART") if "+" in modal[0] else []
    lead = [] if modal[-1] == "-" else tokens(modal[-1], "ADP", to)
    main = english_verb(verb, "base")
    sources = main if lead else to + main
    return VerbGroup(
        english=to + main,
        lead=lead,
        infinitive=tokens(verb.french["infinitive"], "VERB", sources),
        tail=tokens(verb.tail, lexicon.TAIL_TAGS[verb.tail], main),
    )


def be_group(person, style):
    """Conjugate to be."""
    denial, ne, second = negate(style)
    fronted, english = tokens(lexicon.BE[person], "AUX"), []
    text = lexicon.ETRE[person]
    if style.tense == "future":
        fronted, english = tokens("will", "AUX"), tokens("be", "AUX")
        text = "sera" if person == "he" else "seront"
    finite = tokens(text, "AUX", fronted + english)
    return VerbGroup(fronted, denial + english, ne, finite, second)


def predicate_french(group, parts, adverb):
    """French words from ne to the last complement, clitics in place."""
    clitics = sorted(parts.clitics, key=lambda x: lexicon.CLITIC_ORDER[x.text])
    verb = group.finite + group.after
    if group.infinitive:
        verb = verb + group.lead + clitics + group.infinitive
    else:
        verb = clitics + verb
    return group.ne + verb + adverb.french + group.tail + parts.french


def predicate(group, parts=None, adverb=None):
    """Verb and complements without a subject."""
    parts, adverb = parts or Phrase(), adverb or Phrase()
    english = group.fronted + group.english + parts.english + adverb.english
    return Phrase(english, predicate_french(group, parts, adverb))


def question_clause(subject, group, parts=None):
    """A question: the English auxiliary first, est-ce que in French."""
    parts = parts or Phrase()
    english = group.fronted + subject.english + group.english + parts.english
    french = tokens("est-ce que", "ADV SCONJ", group.fronted)
    french += subject.french + predicate_french(group, parts, Phrase())
    return Phrase(english, french)


# -- Clauses ------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Clause(Phrase):
    """A clause and what a later clause may refer back to.

    `joined` says that it has a second predicate ("verb") or clause ("clause").
    """

    subject: NounPhrase = None
    verb: object = None
    object: NounPhrase = None
    style: Style = Style()
    timed: bool = False
    joined: str = ""


def clause_of(phrase, *details, **more):
    """Make a clause of a phrase."""
    return Clause(phrase.english, phrase.french, [], *details, **more)
