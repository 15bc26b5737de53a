"""Write a parallel corpus with gold word alignments: data/eng-fra.tsv.

A small grammar makes random choices; phrases_eng_fra.py builds both languages
together, from the words in lexicon_eng_fra.py.  README.md says what links to
what, and how the lines look.

Usage: python data/make_eng_fra.py [--output PATH] [--statistics]
"""

import argparse
from collections import Counter
import hashlib
import os
from pathlib import Path
import random
import re
import sys
import tempfile

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lexicon_eng_fra as lexicon
from phrases_eng_fra import (
    PERSONS,
    WILL,
    Phrase,
    Style,
    VerbGroup,
    adjective_word,
    articles,
    be_group,
    clause_of,
    conjunction,
    coordinate,
    english_verb,
    infinitive,
    join,
    linked,
    mark,
    nominal,
    noun_phrase,
    object_pronoun,
    others,
    person_pronoun,
    predicate,
    pronoun,
    pronoun_name,
    question_clause,
    render,
    subject_pronoun,
    tokens,
    verb_group,
    word,
)

SEED = 20240607
HEADER = ("english", "french", "alignment", "english_tags", "french_tags")
DEFAULT_OUTPUT = Path(__file__).resolve().parent / "eng-fra.tsv"
# How many pairs to keep for each length of the longer side.
QUOTAS = {4: 450} | {length: 1720 for length in range(5, 17)}
QUOTAS |= {length: 670 for length in range(17, 25)}
MINIMUM_COUNT = 15


# -- The grammar: random choices ----------------------------------------------


TIMES = {
    "simple": lexicon.rows(lexicon.HABITS, "|"),
    "progressive": lexicon.rows(lexicon.NOW, "|"),
    "future": lexicon.rows(lexicon.LATER, "|"),
    "past": lexicon.rows(lexicon.PAST, "|"),
}
MODALS = lexicon.rows(lexicon.MODALS)
PAST_VERBS = lexicon.rows(lexicon.PAST_VERBS)
PLACES = {key: row for key, *row in lexicon.rows(lexicon.PLACES)}
GOALS = [key for key in PLACES if PLACES[key][3] != "-"]


class NounGrammar:
    """Random noun phrases, from choices that even out how often they occur."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.used = Counter()
        self.richness = 0.3  # how long noun phrases and clauses get, 0 to 1
        self.avoided = ()  # adjectives that would be odd just now
        self.known_nouns = {}
        self.known_adjectives = {}
        self.nouns = lexicon.read_nouns()
        self.noun = {noun.singular: noun for noun in self.nouns}
        self.adjectives = lexicon.read_adjectives(lexicon.ADJECTIVES)
        self.adjectives += lexicon.read_adjectives(lexicon.PREDICATES)
        self.verbs = lexicon.read_verbs(lexicon.VERBS)
        self.giving = lexicon.read_verbs(lexicon.GIVING)
        self.saying = lexicon.read_verbs(lexicon.SAYING)
        everything = self.verbs + self.giving + self.saying
        everything += lexicon.read_verbs(lexicon.MOVING)
        self.verb = {verb.base: verb for verb in everything}
        self.personal = [v for v in self.verbs if "person" in v.subjects]

    def chance(self, probability):
        """True with this probability."""
        return self.random.random() < probability

    def weighted(self, **weights):
        """One of the names, by weight."""
        point = self.random.random() * sum(weights.values())
        for name, weight in weights.items():
            point -= weight
            if point < 0:
                return name
        return next(iter(weights))

    def pick(self, options):
        """The less used of two random options."""
        options = list(options)
        size = len(options)
        first = options[int(self.random.random() * size)]
        second = options[int(self.random.random() * size)]
        best = second if self.used[second] < self.used[first] else first
        self.used[best] += 1
        return best

    def nouns_of(self, labels):
        """Nouns in any of these classes, or with one of these names."""
        labels = tuple(labels)
        if labels not in self.known_nouns:
            self.known_nouns[labels] = [
                noun
                for noun in self.nouns
                if {noun.singular, *noun.labels} & set(labels)
            ]
        return self.known_nouns[labels]

    def adjectives_for(self, labels, predicative=False):
        """Adjectives that suit a noun, as an attribute or after be."""
        key = (labels, predicative)
        if key not in self.known_adjectives:
            bad = ["new"] if predicative else ["happy"]
            if predicative and {"person", "kin"} & set(labels):
                bad.append("good")
            self.known_adjectives[key] = [
                adjective
                for adjective in self.adjectives
                if set(adjective.labels) & set(labels)
                and adjective.english not in bad
            ]
        return self.known_adjectives[key]

    def some_adjectives(self, noun):
        """None, one or two adjectives for a noun, one on each side at most."""
        if not self.chance(0.15 + 0.5 * self.richness):
            return ()
        fitting = self.adjectives_for((*noun.labels, noun.singular))
        fitting = [a for a in fitting if a.english not in self.avoided]
        if "kin" in noun.labels:
            fitting = [a for a in fitting if a.english in ("young", "old")]
        if not fitting:
            return ()
        first = self.pick(fitting)
        second = [a for a in fitting if a.before != first.before]
        if "person" in noun.labels:  # "a beautiful sad woman" is too much
            mild = {"young", "old", "small"}
            second = [a for a in second if {a.english, first.english} & mild]
        second = [a for a in second if a.english != "pretty"]
        alone = not second or first.english == "pretty"
        if not alone and self.chance(0.15 + 0.3 * self.richness):
            return (first, self.pick(second))
        return (first,)

    def possessive(self, owner=None):
        """A possessive, most often that of the owner."""
        if owner and self.chance(0.75):
            return lexicon.OWNERS[pronoun_name(owner)]
        return self.pick(("my", "your", "his", "her", "our", "their"))

    def is_plural(self, noun):
        """Whether to use the plural of a noun."""
        if noun.plural == "-" or noun.singular == "-":
            return noun.singular == "-"
        return self.chance(0.7 if "food" in noun.labels else 0.4)

    def determiner_name(self, noun, plural, known=False, owner=None):
        """A determiner that suits a noun; `known` rules out new things."""
        labels = set(noun.labels)
        if "kin" in labels and "person" not in labels:
            return self.possessive(owner)
        if {"task", "smile"} & labels:
            return self.possessive(owner)
        if {"aid", "love"} & labels:
            return ""
        if "mass" in labels:
            loose = not known or noun.singular == "music"
            name = self.weighted(bare=4 * loose, the=3, some=loose, own=1)
            own = {"cooked", "liquid"} & labels
            name = "the" if name == "own" and not own else name
        elif plural:
            new = 0 if known else 2
            name = self.weighted(
                bare=2 * new, the=4, number=1 + new, many=new / 2,
                these=1, those=1, own=2, all=0.4, some=new / 3,
            )  # fmt: skip
        else:
            new = 0 if known else 4
            name = self.weighted(the=4, a=new, this=1, that=1, own=2)
        stranger = "person" in labels and "kin" not in labels
        public = stranger or noun.singular in lexicon.PUBLIC
        if name == "own" and public:
            name = "the"
        return self.named_determiner(name, owner)

    def named_determiner(self, name, owner=None):
        """The determiner itself for a kind of determiner."""
        if name == "own":
            return self.possessive(owner)
        if name == "number":
            return self.pick(lexicon.NUMBERS)
        return {"bare": "", "all": "all the"}.get(name, name)

    def thing(self, labels, mode="", known=False, owner=None):
        """A noun phrase for one of these classes."""
        nouns = self.nouns_of(labels)
        if owner and "child" in owner.labels:
            nouns = [noun for noun in nouns if noun.singular != "daughter"]
        noun = self.pick(nouns)
        plural = self.is_plural(noun)
        name = self.determiner_name(noun, plural, known, owner)
        counted = name in ("many", *lexicon.NUMBERS)
        if name == "some" and mode:
            name = "any" if mode == "de" else ""
        elif mode == "generic" and (counted or name == "a"):
            name = "the" if name == "a" else ""
        elif mode == "de" and (counted or name == "all the"):
            name = ""
        elif mode == "after de" and name == "many":
            name = ""
        adjectives = self.some_adjectives(noun)
        return noun_phrase(noun, plural, name, adjectives, mode)

    def owned(self, labels):
        """ "marie 's car": la voiture de marie."""
        nouns = [
            noun
            for noun in self.nouns_of(labels)
            if noun.singular not in lexicon.PUBLIC
        ]
        noun = self.pick(nouns or [self.noun["bag"], self.noun["key"]])
        plural = self.is_plural(noun)
        owner = self.name()
        while self.chance(0.4) or owner.plural:
            owner = self.person()
        what = noun_phrase(noun, plural, "", self.some_adjectives(noun), "de")
        article = articles(noun.gender, plural, "le", "la", "les")
        of = word("'s", "de", "PART", "ADP")
        what.english = owner.english + of.english + what.english
        what.french = tokens(article, "DET") + what.french[1:]
        what.french += of.french + owner.french
        return what

    def name(self):
        """A first name."""
        name = self.pick(lexicon.NAMES)
        return nominal(word(name, name, "PROPN"), lexicon.NAMES[name])

    def person(self, pronouns=False, owner=None):
        """Somebody."""
        kind = self.weighted(
            pronoun=4 * pronouns, name=3, names=pronouns * 0.8, kin=3,
            noun=6, pair=pronouns * self.richness,
        )  # fmt: skip
        if kind == "pronoun":
            return pronoun(self.pick(lexicon.SUBJECT_PRONOUNS))
        if kind == "name":
            return self.name()
        if kind == "names":
            return coordinate(self.name(), self.name())
        if kind == "kin":
            return self.kin(owner)
        if kind == "pair":
            return coordinate(self.person(), self.kin())
        return self.somebody(("person",))

    def somebody(self, labels):
        """A common noun for a person or an animal, as a subject."""
        noun = self.pick(self.nouns_of(labels))
        plural = self.is_plural(noun)
        if plural:
            name = self.weighted(the=5, these=1, those=1, number=1.5, all=0.5)
        else:
            name = self.weighted(the=6, a=0.7, this=1, that=1)
        the = self.named_determiner(name)
        return noun_phrase(noun, plural, the, self.some_adjectives(noun))

    def kin(self, owner=None):
        """A relative or friend: her brother, his aunt."""
        owner = owner if owner and owner.human else None
        return self.thing(("kin",), known=True, owner=owner)

    def subject_of(self, verb, free=True):
        """A subject for a verb, of a person that the verb is used in.

        With `free`, a verb of action may come with any person: a modal then
        carries the ending.
        """
        while True:
            subject = self.subject_for(verb.subjects)
            if verb.french[subject.person] != "-":
                return subject
            modal = lexicon.is_active(verb) and verb.ing != "-"
            if free and modal and self.chance(0.5):
                return subject

    def subject_for(self, labels):
        """Somebody or something of these classes."""
        creatures = [x for x in labels if x not in ("person", "kin")]
        if "person" not in labels or (creatures and self.chance(0.25)):
            return self.somebody(creatures)
        return self.person(pronouns=True)

    def place(self, key, going=False):
        """Where: in the kitchen, at school, to the market."""
        noun = self.noun[key]
        english, french = PLACES[key][2:] if going else PLACES[key][:2]
        where = word(english, french, "ADP")
        if key == "school":
            article = Phrase([], tokens("la", "DET"))
            return join(where, article, word(key, noun.french, "NOUN"))
        name, adjectives = "the", ()
        if french == "dans":
            name = self.weighted(the=6, this=0.5, a=0.7, own=1)
            adjectives = self.some_adjectives(noun)
            private = key in ("kitchen", "room", "house", "garden")
            name = "the" if name == "own" and not private else name
        the = self.named_determiner(name)
        return where + noun_phrase(noun, False, the, adjectives)

    def spot(self, row):
        """ "on sur table chair": on the table; "+" joins French words."""
        english, french, *keys = row.split()
        noun = self.noun[self.pick(keys)]
        name = self.weighted(the=5, this=1, that=0.5)
        french = french.replace("+", " ")
        tags = " ".join(["ADP"] * len(french.split()))
        place = noun_phrase(noun, False, name, self.some_adjectives(noun))
        return linked(english, "ADP", french, tags) + place


class ClauseGrammar(NounGrammar):
    """Random clauses."""

    # -- verb, object, place and time ------------------------------------

    def style_for(self, verb, subject, plain=False):
        """Tense, negation, modal and frequency for a verb."""
        person = subject.person
        future = person in WILL and verb.french[WILL[person]] != "-"
        active = lexicon.is_active(verb)
        usual = verb.french[person] != "-"
        during = active and verb.ing != "-" and verb.base not in lexicon.SUDDEN
        tense = self.weighted(
            simple=5 * usual,
            progressive=2 * (during and usual),
            future=1.2 * future,
            modal=0 if plain or verb.ing == "-" or not active else 2,
        )
        deny = not plain and verb.base != "love" and self.chance(2 / 9)
        negation = "not" if deny else ""
        if tense == "modal":
            modal = self.modal_for(verb, person)
            free = modal[0] in ("can", "must", "want+to", "like+to")
            return Style("simple", negation if free else "", modal)
        if tense != "simple" or not active:
            return Style(tense, negation)
        if negation and self.chance(0.35):
            negation = "never"
        often = not negation and self.chance(0.15)
        frequency = self.pick(lexicon.FREQUENCY) if often else ""
        return Style(tense, negation, (), frequency)

    def modal_for(self, verb, person):
        """A modal that suits a verb."""
        fitting = []
        for row in MODALS:
            uses = lexicon.MODAL_USES[row[0]]
            form = row[PERSONS.index(person) + 2]
            if form != "-" and (uses == "*" or verb.base in uses.split()):
                fitting.append(row)
        return self.pick(fitting)

    def time(self, style):
        """When, for a tense."""
        if style.negation == "never" or style.frequency:
            return Phrase()
        tense = style.tense
        if style.modal and style.modal[0] in ("must", "want+to"):
            tense = "future"
        elif style.modal and style.modal[0] != "like+to":
            return Phrase()
        return linked(*self.pick(TIMES[tense]))

    def add_time(self, clause, probability):
        """Say when, with this probability."""
        if self.chance(probability):
            when = self.time(clause.style)
            clause.timed = bool(when.english)
            clause.replace(clause + when)

    def object_for(self, verb, style, owner):
        """A noun phrase that a verb can take as object."""
        self.avoided = (verb.base,)
        mode = ""
        if verb.base in ("like", "love"):
            mode = "generic"
        elif verb.tail.endswith("de"):
            mode = "after de"
        elif style.negation and not verb.tail:
            mode = "de"
        labels = verb.objects
        people = {"person", "kin"} & set(labels)
        known = verb.base in lexicon.DEFINITE
        if people and self.chance(0.35 if len(labels) > 2 else 0.9):
            if mode == "de" or known:
                return self.person(owner=owner)
            return self.thing(sorted(people), mode, known, owner)
        mass = {"food", "liquid", "event"} & set(labels)
        if not people and not mode and not mass and self.chance(0.06):
            return self.owned(labels)
        return self.thing(labels, mode, known, owner)

    def add_adjunct(self, clause, place=0.35):
        """Where and when, more often the richer the sentence."""
        verb = clause.verb
        needs = lexicon.PLACE_NEEDS.get(verb.base)
        labels = clause.object.labels if clause.object else ()
        fits = needs is None or set(needs.split()) & set(labels)
        if verb.places and fits and self.chance(place + 0.3 * self.richness):
            clause.replace(clause + self.place(self.pick(verb.places)))
        if lexicon.is_active(verb) and not clause.timed:
            self.add_time(clause, 0.15 + 0.25 * self.richness)

    def adverb(self, verb, style, subject):
        """A manner adverb, or nothing."""
        fitting = list(verb.adverbs)
        if not subject.plural and "together" in fitting:
            fitting.remove("together")
        if style.modal and "well" in fitting:
            fitting.remove("well")
        if not fitting or style.frequency or not self.chance(0.2):
            return Phrase()
        name = self.pick(fitting)
        return word(name, lexicon.MANNER[name], "ADV")

    # -- clauses with a verb ---------------------------------------------

    def statement(self, verb=None, subject=None, style=None, timed=False):
        """Subject, verb, object, place and time."""
        verb = verb or self.pick(self.verbs)
        subject = subject or self.subject_of(verb)
        style = style or self.style_for(verb, subject)
        group = verb_group(verb, subject.person, style)
        parts = found = None
        human = {"person", "kin"} & set(verb.objects)
        if human and not verb.tail.endswith("de") and self.chance(0.3):
            name = self.pick(others(subject))
            parts = person_pronoun(name, verb.tail == "à")
            group.tail = []
        elif verb.objects:
            parts = found = self.object_for(verb, style, subject)
        rest = predicate(group, parts, self.adverb(verb, style, subject))
        clause = clause_of(subject + rest, subject, verb, found, style, timed)
        self.add_adjunct(clause)
        return clause

    def giving_clause(self):
        """She gives the book to him; she gives him the book."""
        verb = self.pick(self.giving)
        subject = self.subject_of(verb)
        style = self.style_for(verb, subject)
        group = verb_group(verb, subject.person, style)
        mode = "de" if style.negation else ""
        self.avoided = ("expensive",)
        gift = self.thing(verb.objects, mode, owner=subject)
        rest = predicate(group, self.receiver(subject, gift))
        clause = clause_of(subject + rest, subject, verb, gift, style)
        self.add_time(clause, 0.1 + 0.3 * self.richness)
        return clause

    def receiver(self, subject, gift):
        """The complements of a verb of giving, in one of four orders."""
        kind = self.weighted(to=4, pronoun=3, double=2, to_pronoun=1)
        if kind == "pronoun":
            return person_pronoun(self.pick(others(subject)), True) + gift
        if kind == "to_pronoun":
            whom = self.pick(others(subject))
            return gift + person_pronoun(whom, True, True)
        person = self.person(owner=subject)
        if kind == "to":
            return join(gift, word("to", "à", "ADP"), person)
        target = gift.french + tokens("à", "ADP") + person.french
        return Phrase(person.english + gift.english, target)

    def going_clause(self):
        """Go to the market, live in a small village, stay at school."""
        kind = self.weighted(go=4, live=1.5, stay=1.5)
        verb = self.verb[kind]
        subject = self.subject_of(verb)
        style = self.style_for(verb, subject)
        group = verb_group(verb, subject.person, style)
        keys = GOALS if kind == "go" else verb.places
        where = self.place(self.pick(keys), kind == "go")
        phrase = join(subject, predicate(group), where, self.company(subject))
        clause = clause_of(phrase, subject, verb, None, style)
        self.add_time(clause, 0.3 if kind != "live" else 0)
        return clause

    def company(self, subject):
        """With her brother."""
        if subject.plural or not self.chance(0.25 + 0.3 * self.richness):
            return Phrase()
        return word("with", "avec", "ADP") + self.kin(subject)

    def past_clause(self):
        """My sister went to the market: ma sœur est allée au marché."""
        english, *forms = self.pick(PAST_VERBS)
        subject = self.person(pronouns=True)
        while subject.person in ("i", "you"):
            subject = self.person(pronouns=True)
        source = tokens(english, "VERB")
        text = forms[(subject.gender == "f") + 2 * subject.plural]
        french = tokens(lexicon.ETRE[subject.person], "AUX", source)
        french += tokens(text, "VERB", source)
        where = self.place(self.pick(GOALS), english == "went")
        went = Phrase(source, french)
        phrase = join(subject, went, where, self.company(subject))
        clause = clause_of(phrase, subject, style=Style("past"))
        self.add_time(clause, 0.7)
        return clause

    def putting_clause(self):
        """She puts the book on the table."""
        verb = self.verb["put"]
        subject = self.subject_of(verb)
        style = self.style_for(verb, subject)
        group = verb_group(verb, subject.person, style)
        labels, row = self.pick(lexicon.rows(lexicon.PUT, "|"))
        what = self.thing(labels.split(","), known=True, owner=subject)
        phrase = join(subject, predicate(group, what), self.spot(row))
        return clause_of(phrase, subject, verb, what, style, True)

    # -- clauses with be -------------------------------------------------

    def located_clause(self):
        """The keys are on the table."""
        labels, row = self.pick(lexicon.rows(lexicon.LOCATED, "|"))
        what = self.thing(labels.split(","), known=True)
        style = Style("simple", "not" if self.chance(0.2) else "")
        group = be_group(what.person, style)
        phrase = join(what, predicate(group), self.spot(row))
        return clause_of(phrase, what, style=style)

    def be_clause(self, subject=None):
        """The car is old; the children are not tired."""
        if not subject:
            kind = self.weighted(person=3, animal=1, thing=4)
            if kind == "person":
                subject = self.person(pronouns=True)
            else:
                subject = self.describable(kind)
        if subject.person in ("i", "you"):
            names = lexicon.EVERYBODY
            fitting = [a for a in self.adjectives if a.english in names]
        else:
            fitting = self.unsaid(subject)
        adjective = self.pick(fitting)
        future = adjective.english in lexicon.PASSING
        future = future and subject.person in WILL and self.chance(0.12)
        negation = "not" if self.chance(0.2) else ""
        style = Style("future" if future else "simple", negation)
        return self.quality(subject, adjective, style)

    def unsaid(self, subject):
        """Qualities of a subject that its own adjectives leave open."""
        said = {token.text for token in subject.english}
        for row in lexicon.SAME_QUALITY:
            if said & set(row.split()):
                said |= set(row.split())
        fitting = self.adjectives_for(subject.labels, True)
        return [a for a in fitting if a.english not in said] or fitting

    def describable(self, kind):
        """A thing or an animal that some adjective suits."""
        labels = lexicon.DESCRIBABLE if kind == "thing" else ("animal",)
        noun = self.pick(self.nouns_of(labels))
        if not self.adjectives_for((*noun.labels, noun.singular), True):
            return self.describable(kind)
        plural = self.is_plural(noun)
        name = self.determiner_name(noun, plural, True) or "this"
        return noun_phrase(noun, plural, name)

    def quality(self, subject, adjective, style=None):
        """Subject, be and an adjective, perhaps with very or too."""
        style = style or Style()
        look = adjective_word(adjective, subject.gender, subject.plural)
        name = adjective.english
        very = 2 * (name not in lexicon.ABSOLUTE)
        too = name in lexicon.EXCESSIVE
        degree = self.weighted(none=5, very=very, too=too)
        if degree != "none":
            french = "très" if degree == "very" else "trop"
            look = word(degree, french, "ADV") + look
        rest = predicate(be_group(subject.person, style), look)
        return clause_of(subject + rest, subject, style=style)

    def feels(self, subject, english, french, negation=""):
        """Be hungry and the like, with avoir in French."""
        style = Style("simple", negation)
        group = be_group(subject.person, style)
        for token in group.finite:
            token.text = self.verb["have"].french[subject.person]
            token.tag = "VERB"
        what = word(english, french, "ADJ", "NOUN")
        if not negation and self.chance(0.25):
            what = word("very", "très", "ADV") + what
        phrase = subject + predicate(group, what)
        return clause_of(phrase, subject, style=style)

    def feeling(self, subject, negation=""):
        """The boy is cold: le garçon a froid."""
        name = self.pick(lexicon.FEELINGS)
        return self.feels(subject, name, lexicon.FEELINGS[name], negation)

    def feeling_clause(self):
        """Somebody is hungry, cold or afraid of something."""
        subject = self.subject_for(("person", "kin", "pet"))
        negation = "not" if self.chance(0.12) else ""
        if self.chance(0.7):
            return self.feeling(subject, negation)
        clause = self.feels(subject, "afraid", "peur", negation)
        noun = self.pick(self.nouns_of(("dog", "horse", "cat", "bird")))
        look = self.some_adjectives(noun)
        what = noun_phrase(noun, True, "", look, "generic")
        clause.replace(join(clause, word("of", "de", "ADP"), what))
        return clause

    def there_clause(self):
        """There is a cat in the garden; there is no bread in the kitchen."""
        labels, places = self.pick(lexicon.rows(lexicon.THERE, "|"))
        noun = self.pick(self.nouns_of(labels.split(",")))
        plural = self.is_plural(noun)
        adjectives = self.some_adjectives(noun)
        there = tokens("there " + ("are" if plural else "is"), "PRON VERB")
        french = tokens("il", "PRON", there)
        y_a = tokens("y a", "PRON VERB", there)
        if self.chance(0.2):
            what = noun_phrase(noun, plural, "any", adjectives, "de")
            no = what.english[:1]
            no[0].text = "no"
            french += tokens("ne", "ADV", no) + y_a + tokens("pas", "ADV", no)
        else:
            french += y_a
            name = "a"
            if "mass" in noun.labels:
                name = self.pick(("", "some"))
            elif plural:
                name = self.weighted(number=3, many=2, bare=1, some=1)
            the = self.named_determiner(name)
            what = noun_phrase(noun, plural, the, adjectives)
        place = self.place(self.pick(places.split()))
        return clause_of(join(Phrase(there, french), what, place), what)

    def this_is(self):
        """That is my book: c' est mon livre."""
        labels = ("kin", "thing", "text", "clothes", "vehicle", "screen")
        labels += ("house", "school", "shop", "image", "flora", "pet")
        noun = self.pick(self.nouns_of(labels))
        plural = self.is_plural(noun)
        name = self.weighted(the=1, own=3, a=2 * (not plural))
        if "kin" in noun.labels or "pet" in noun.labels:
            name = "own"
        adjectives = self.some_adjectives(noun)
        determiner = self.named_determiner(name)
        what = noun_phrase(noun, plural, determiner, adjectives)
        negation = "not" if self.chance(0.15) else ""
        group = be_group(what.person, Style("simple", negation))
        this = self.pick(("these", "those") if plural else ("this", "that"))
        clause = word(this, "ce", "PRON") + predicate(group, what)
        if name == "a" and not negation and self.chance(0.7):
            clause += self.relative(what)
        return clause_of(clause, what)

    def job_clause(self):
        """My brother is a doctor: mon frère est médecin."""
        subject = self.person()
        while subject.plural or "job" in subject.labels:
            subject = self.person()
        jobs = self.nouns_of(("job",))
        noun = self.pick([n for n in jobs if n.gender == subject.gender])
        negation = "not" if self.chance(0.15) else ""
        article = Phrase(tokens("a", "DET"))
        what = article + word(noun.singular, noun.french, "NOUN")
        group = be_group("he", Style("simple", negation))
        return clause_of(subject + predicate(group, what), subject)


class SentenceGrammar(ClauseGrammar):
    """Random sentences."""

    # -- relative clauses ------------------------------------------------

    def relative(self, head):
        """Who plays in the garden; that she reads."""
        if head.english[0].text not in ("a", "the", "this", "that"):
            return Phrase()
        if head.human and self.chance(0.7):
            return self.subject_relative(head)
        fitting = [
            verb
            for verb in self.verbs
            if set(verb.objects) & set(head.labels)
            and not verb.tail
            and verb.base != "have"
        ]
        if not fitting:
            return Phrase()
        verb = self.pick(fitting)
        subject = self.relative_subject(head)
        while verb.french[subject.person] == "-":
            subject = self.relative_subject(head)
        style = self.style_for(verb, subject, plain=True)
        group = verb_group(verb, subject.person, style)
        english = "that" if head.human else self.pick(("that", "which"))
        return join(word(english, "que", "PRON"), subject, predicate(group))

    def relative_subject(self, head):
        """The subject of an object relative: not the head itself."""
        if self.chance(0.4):
            names = ("i", "you") if head.human else lexicon.SUBJECT_PRONOUNS
            return pronoun(self.pick(names))
        return self.name() if self.chance(0.5) else self.kin()

    def subject_relative(self, head):
        """Who plays in the garden."""
        unfit = ("need", "have")
        verb = self.pick([v for v in self.personal if v.base not in unfit])
        style = self.style_for(verb, head, plain=True)
        group = verb_group(verb, head.person, style)
        found = self.object_for(verb, style, head) if verb.objects else None
        who = word(self.pick(("who", "who", "that")), "qui", "PRON")
        phrase = who + predicate(group, found)
        clause = clause_of(phrase, head, verb, found, style)
        if not found:
            self.add_adjunct(clause, 0.7)
        return clause

    def relative_sentence(self):
        """The boy who plays in the garden is tired; the car that ..."""
        person = self.chance(0.6)
        head = self.describable("thing")
        if person:
            head = self.somebody(("person",))
        head.replace(head + self.relative(head))
        if person and self.chance(0.65):
            return self.statement(self.pick(self.personal), head)
        return self.be_clause(head)

    def object_relative_sentence(self):
        """She reads the book that her brother likes."""
        verbs = [v for v in self.verbs if v.objects and not v.tail]
        clause = self.statement(self.pick(verbs))
        what = clause.object
        if not what or clause.timed or clause.style.negation:
            return clause
        if clause.english[-1] is what.english[-1]:
            clause.replace(clause + self.relative(what))
        return clause

    # -- two predicates --------------------------------------------------

    def with_object(self, table):
        """A clause with a full object, and a verb of the table for both."""
        while True:
            verb = self.pick([v for v in self.verbs if v.base in table])
            subject = self.subject_of(verb)
            style = self.style_for(verb, subject)._replace(negation="")
            clause = self.statement(verb, subject, style)
            if clause.object is None or style.tense != "simple":
                continue
            verbs = [self.verb[name] for name in table[verb.base].split()]
            verbs = [v for v in verbs if self.suits(v, clause)]
            if verbs:
                return clause, self.pick(verbs)

    def suits(self, verb, clause):
        """Whether a second verb can take the object of a clause."""
        subject, what = clause.subject, clause.object
        if what.human and what.plural and subject.person == "they":
            return False
        if not set(verb.objects) & set(what.labels):
            return False
        return verb.french[subject.person] != "-"

    def again(self, verb, clause):
        """The object again, as a pronoun; with a receiver for give."""
        subject = clause.subject
        part = object_pronoun(clause.object)
        if verb not in self.giving:
            return part
        if self.chance(0.5) and subject.person != "they":
            whom = self.pick(others(subject))
            return part + person_pronoun(whom, True, True)
        return join(part, word("to", "à", "ADP"), self.person(owner=subject))

    def follow_up(self):
        """My sister buys the car and washes it; ... wants to ... and to ..."""
        clause, verb = self.with_object(lexicon.FOLLOW_UPS)
        style = clause.style._replace(frequency="")
        if style.modal:
            group = infinitive(verb, style.modal)
        else:
            group = verb_group(verb, clause.subject.person, style)
        second = predicate(group, self.again(verb, clause))
        clause.replace(join(clause, conjunction("and"), second))
        clause.timed, clause.joined = True, "verb"
        return clause

    def contrast(self):
        """She buys the book, but she does not read it."""
        clause, verb = self.with_object(lexicon.CONTRASTS)
        if clause.style.modal:
            return clause
        subject = subject_pronoun(clause.subject)
        if self.chance(0.4):
            subject = self.kin(clause.subject)
        acts = lexicon.is_active(verb) and self.chance(0.6)
        modal = self.pick((MODALS[0], MODALS[2])) if acts else ()
        style = Style("simple", "not", modal)
        group = verb_group(verb, subject.person, style)
        second = subject + predicate(group, object_pronoun(clause.object))
        clause.replace(join(clause, mark(","), conjunction("but"), second))
        clause.joined = "clause"
        return clause

    def conditional(self):
        """If she buys the car, she will wash it."""
        clause, verb = self.with_object(lexicon.FOLLOW_UPS)
        subject, style = clause.subject, clause.style
        will = verb.french.get(WILL.get(subject.person), "-")
        if will == "-" or style.modal or style.frequency or clause.timed:
            return clause
        group = verb_group(verb, subject.person, Style("future"))
        second = predicate(group, self.again(verb, clause))
        second = join(mark(","), subject_pronoun(subject), second)
        clause.replace(join(conjunction("if"), clause, second))
        clause.joined = "clause"
        return clause

    # -- questions -------------------------------------------------------

    def question(self):
        """Does she eat bread?"""
        kind = self.weighted(plain=4, be=1.2, place=0.8, where=1.5, why=1.5,
                             when=1, what=1, which=1.5, many=1,
                             who=1.5)  # fmt: skip
        if kind == "be":
            return self.be_question()
        if kind == "place":
            return self.place_question()
        if kind == "who":
            return self.who_question()
        if kind in ("what", "which", "many"):
            return self.object_question(kind)
        verbs = self.verbs
        if kind == "where":
            verbs = [v for v in verbs if v.places]
        if kind == "when":
            verbs = [v for v in verbs if lexicon.is_active(v)]
        verb, subject, style = self.asked(verbs)
        group = verb_group(verb, subject.person, style, True)
        found = self.object_for(verb, style, None) if verb.objects else None
        phrase = question_clause(subject, group, found)
        clause = clause_of(phrase, subject, verb, found, style)
        if kind in ("plain", "why"):
            self.add_adjunct(clause)
        if kind == "plain":
            return clause
        french = {"where": "où", "why": "pourquoi", "when": "quand"}[kind]
        return word(kind, french, "ADV") + clause

    def asked(self, verbs):
        """Verb, subject and style of a question."""
        verb = self.pick(verbs)
        subject = self.subject_of(verb)
        while subject.person == "i":
            subject = self.subject_of(verb)
        style = self.style_for(verb, subject)
        return verb, subject, style._replace(negation="", frequency="")

    def be_question(self):
        """Is the car red?"""
        kind = self.weighted(thing=3, animal=1, person=2)
        subject = self.person() if kind == "person" else self.describable(kind)
        adjective = self.pick(self.adjectives_for(subject.labels, True))
        look = adjective_word(adjective, subject.gender, subject.plural)
        return question_clause(subject, be_group(subject.person, Style()), look)

    def place_question(self):
        """Where are the keys?"""
        labels = ("thing", "text", "pet", "kin", "clothes", "building")
        subject = self.thing(labels, known=True)
        be = word(
            lexicon.BE[subject.person], lexicon.ETRE[subject.person], "AUX"
        )
        return join(word("where", "où", "ADV"), be, subject)

    def who_question(self):
        """Who eats the bread?"""
        verb = self.pick(self.personal)
        someone = nominal(word("who", "qui", "PRON"))
        style = self.style_for(verb, someone)
        style = style._replace(negation="", frequency="")
        return self.statement(verb, someone, style)

    def object_question(self, kind):
        """What does she eat? Which book...? How many apples...?"""
        verbs = [self.verb[name] for name in lexicon.ASKED]
        verb, subject, style = self.asked(verbs)
        group = verb_group(verb, subject.person, style, True)
        body = question_clause(subject, group)
        nouns = [n for n in self.nouns_of(verb.objects) if n.plural != "-"]
        if kind == "what" or not nouns:
            return word("what", "que", "PRON") + body
        noun = self.pick(nouns)
        adjectives = self.some_adjectives(noun)
        if kind == "many":
            what = noun_phrase(noun, True, "", adjectives, "after de")
            much = linked("how many", "ADV ADJ", "combien de", "ADV ADP")
            return join(much, what, body)
        plural = self.is_plural(noun)
        what = noun_phrase(noun, plural, "which", adjectives)
        if plural and noun.gender == "f":
            what.french[0].text = "quelles"
        return what + body

    # -- what can be added to a clause -----------------------------------

    def add_purpose(self, clause):
        """She goes to the market to buy bread."""
        verb = self.verb[self.pick(lexicon.PURPOSES)]
        to, main = tokens("to", "PART"), english_verb(verb, "base")
        group = VerbGroup(english=to + main, lead=tokens("pour", "ADP", to))
        group.infinitive = tokens(verb.french["infinitive"], "VERB", main)
        found = None
        if verb.objects:
            found = self.object_for(verb, Style(), clause.subject)
        clause.replace(clause + predicate(group, found))

    def add_because(self, clause):
        """... because she is tired."""
        reason = self.reason(clause)
        if reason:
            clause.replace(join(clause, conjunction("because"), reason))

    def add_and(self, clause):
        """... and her brother plays in the garden."""
        second = self.parallel(clause, self.personal)
        clause.replace(join(clause, conjunction("and"), second))

    def add_while(self, clause):
        """... while her brother plays in the garden."""
        second = self.parallel(clause, filter(lexicon.is_active, self.personal))
        clause.replace(join(clause, conjunction("while"), second))

    def parallel(self, clause, verbs):
        """A second clause with a subject of its own and the same tense."""
        subject = self.kin(clause.subject)
        tense = clause.style.tense
        if tense == "future":
            will = WILL[subject.person]
            verbs = [v for v in verbs if v.french[will] != "-"]
        elif tense == "progressive":
            verbs = [v for v in verbs if lexicon.is_active(v)]
        verbs = [v for v in verbs if v.base not in lexicon.SUDDEN]
        return self.statement(self.pick(verbs), subject, Style(tense), True)

    def reason(self, clause):
        """Why: because she is hungry, because it is dirty, or None."""
        verb, what = clause.verb.base, clause.object
        again = subject_pronoun(clause.subject)
        if clause.style.negation:
            return self.weather() if verb in lexicon.OUTDOOR else None
        labels = what.labels if what else ("-",)
        options = []
        for base, classes, own, other in lexicon.rows(lexicon.REASONS, "|"):
            if base == verb and set(classes.split(",")) & set(labels):
                options += [(again, name) for name in own.split()]
                options += [(what, name) for name in other.split()]
        if verb in lexicon.LIKING and what and not what.human:
            options.append((again, "like"))
        said = {"-", *(token.text for token in clause.english)}
        options = [option for option in options if option[1] not in said]
        if not options:
            return self.weather() if verb in lexicon.INDOOR else None
        return self.because(clause, *self.pick(options))

    def because(self, clause, who, name):
        """The subject or the object is so, or the subject likes the object."""
        if name == "like":
            verb = self.verb[self.pick(("like", "love"))]
            group = verb_group(verb, who.person, Style())
            return who + predicate(group, object_pronoun(clause.object))
        if who is not clause.object and name in lexicon.FEELINGS:
            return self.feels(who, name, lexicon.FEELINGS[name])
        it = subject_pronoun(who)
        fitting = self.adjectives_for(who.labels, True)
        fitting = [a for a in fitting if a.english == name]
        if not fitting or who.person in ("i", "you"):
            return None
        return self.quality(it, fitting[0])

    def weather(self):
        """It is raining; it is cold."""
        return linked(*self.pick(lexicon.rows(lexicon.WEATHER, "|")))

    def add_say(self, clause):
        """My aunt thinks that ..."""
        verb = self.pick(self.saying)
        if clause.style.modal and verb.base == "hope":
            verb = self.verb["think"]
        subject = self.subject_of(verb, free=False)
        opening = subject + predicate(verb_group(verb, subject.person, Style()))
        clause.replace(join(opening, conjunction("that"), clause))

    def add_when(self, clause, name="when"):
        """When it rains, ...; when her brother is cold, ..."""
        cause = self.weather()
        if name == "when" and self.chance(0.5):
            cause = self.feeling(self.kin(clause.subject))
        start = conjunction(name) + cause
        clause.replace(join(start, mark(","), clause))

    def add_if(self, clause):
        """If it is cold, ..."""
        self.add_when(clause, "if")

    def add_opening(self, clause):
        """In the morning, ..."""
        when = self.time(clause.style)
        if when.english:
            clause.replace(join(when, mark(","), clause))

    # -- sentences -------------------------------------------------------

    def tails(self, clause):
        """What can follow a clause."""
        style = clause.style
        if clause.joined or not clause.verb or style.tense == "past":
            return []
        if style.tense == "future":
            return ["and"]
        moves = clause.verb.base in ("go", "stay")
        options = ["purpose", "purpose"] if moves else ["because"]
        if not style.modal:
            options.append("and")
            if lexicon.is_active(clause.verb) and not style.negation:
                options.append("while")
        return options

    def heads(self, clause, tail):
        """What can come before a clause; "that" covers one clause only."""
        style = clause.style
        if clause.joined == "clause":
            return []
        options = [] if tail in ("and", "because") else ["say"]
        if not clause.verb or style.tense == "past" or style.modal:
            return options
        if tail != "because":
            if style.tense == "future":
                options.append("if")
            elif style.tense == "simple" and lexicon.is_active(clause.verb):
                options += ["when"] * (not clause.timed)
        if not clause.timed and lexicon.is_active(clause.verb):
            options += ["opening", "opening"]
        return options

    def extend(self, clause, twice):
        """Put something before or after the clause, or both."""
        tails = self.tails(clause)
        tail = ""
        if tails and (twice or self.chance(0.55)):
            tail = self.pick(tails)
            getattr(self, "add_" + tail)(clause)
        heads = self.heads(clause, tail)
        if heads and (twice or not tail):
            getattr(self, "add_" + self.pick(heads))(clause)

    def sentence(self, target):
        """A sentence of about this many tokens."""
        self.richness = min(1.0, max(0.0, (target - 6) / 12))
        if self.chance(0.13):
            return join(self.question(), mark("?"))
        frames = dict(lexicon.FRAMES)
        if target > 16:
            frames = {name: frames[name] for name in lexicon.LONG_FRAMES}
        clause = getattr(self, self.weighted(**frames))()
        if target > 8 and self.chance((target - 7) / 9):
            self.extend(clause, self.chance((target - 10) / 10))
        return join(clause, mark("."))


# -- The corpus ---------------------------------------------------------------


def longer_side(pair):
    """Number of tokens of the longer side."""
    return max(len(pair.english.split()), len(pair.french.split()))


WOMEN = "|".join(name for name, sex in lexicon.NAMES.items() if sex == "f")
UNCLEAR = re.compile(
    r"that that|bien beaucoup"
    # Are all not, or are not all?
    r"|\ball .*(not|never)\b|(not|never) .*\ball\b"
    # "Ils" after several women.
    rf"|\t.*\b(filles|femmes|sœurs|({WOMEN}) et ({WOMEN}))\b.* ils\b"
)


def acceptable(pair):
    """Whether a pair is long enough, clear and pleasant to read."""
    french = pair.french.split()
    if min(len(pair.english.split()), len(french)) < 4:
        return False
    words = zip(french, pair.french_tags.split(), strict=True)
    said = [x.rstrip("s") for x, tag in words if tag in lexicon.UNREPEATED]
    repeated = len(set(said)) < len(said)
    return not repeated and not UNCLEAR.search("\t".join(pair[:2]))


def collect(grammar, quotas, limit):
    """Draw sentences until the quotas are full or the limit is reached."""
    found = {}
    left = dict(quotas)
    for attempt in range(limit):
        open_lengths = [length for length in left if left[length] > 0]
        if not open_lengths:
            break
        target = open_lengths[attempt % len(open_lengths)]
        pair = render(grammar.sentence(target))
        length = longer_side(pair)
        if left.get(length, 0) <= 0 or not acceptable(pair):
            continue
        if pair.english not in found:
            found[pair.english] = pair
            left[length] -= 1
    return list(found.values())


def word_counts(pairs):
    """How often each word occurs, on each side."""
    english, french = Counter(), Counter()
    for pair in pairs:
        english.update(pair.english.split())
        french.update(pair.french.split())
    return english, french


def without_rare_words(pairs):
    """Leave out pairs with a word that is too rare to be learnt."""
    while True:
        english, french = word_counts(pairs)
        rare = {x for x in english if english[x] < MINIMUM_COUNT}
        rare_french = {x for x in french if french[x] < MINIMUM_COUNT}
        if not rare and not rare_french:
            return pairs
        pairs = [
            pair
            for pair in pairs
            if rare.isdisjoint(pair.english.split())
            and rare_french.isdisjoint(pair.french.split())
        ]


def generate():
    """All pairs of the corpus, always the same ones."""
    grammar = SentenceGrammar(SEED)
    return without_rare_words(collect(grammar, QUOTAS, 150_000))


def check(pairs):
    """Raise an error if a pair breaks the format."""
    if len({pair.english for pair in pairs}) != len(pairs):
        raise ValueError("an English sentence occurs twice")
    for pair in pairs:
        english, french, links, *tags = (field.split(" ") for field in pair)
        if [len(english), len(french)] != [len(names) for names in tags]:
            raise ValueError(f"tags: {pair}")
        for link in links:
            i, j = map(int, link.split("-"))
            if i >= len(english) or j >= len(french):
                raise ValueError(f"alignment: {pair}")


def as_bytes(pairs):
    """The contents of the TSV file."""
    rows = ["\t".join(row) for row in [HEADER, *pairs]]
    return ("\n".join(rows) + "\n").encode("utf-8")


def write(path, contents):
    """Write a file in one step, so that no reader sees half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(contents)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def words_with_several_tags(pairs):
    """English words that occur with more than one tag, frequent first."""
    tags = {}
    for pair in pairs:
        words, names = pair.english.split(), pair.english_tags.split()
        for text, tag in zip(words, names, strict=True):
            tags.setdefault(text, Counter())[tag] += 1
    several = [(text, c) for text, c in tags.items() if len(c) > 1]
    return sorted(several, key=lambda item: (-item[1].total(), item[0]))


def link_counts(pairs):
    """Links, crossing links, pairs with some, unlinked words per side."""
    total = crossing = sentences = english = french = 0
    for pair in pairs:
        links = [tuple(map(int, x.split("-"))) for x in pair.alignment.split()]
        crossed = [
            any((i - k) * (j - m) < 0 for k, m in links) for i, j in links
        ]
        total += len(links)
        crossing += sum(crossed)
        sentences += any(crossed)
        english += len(pair.english.split()) - len({i for i, _ in links})
        french += len(pair.french.split()) - len({j for _, j in links})
    return total, crossing, sentences, english, french


def statistics(pairs):
    """The numbers that data/README.md gives, as Markdown."""
    english, french = word_counts(pairs)
    total, crossing, sentences, alone, other = link_counts(pairs)
    rows = [
        ("pairs", f"{len(pairs):,}"),
        ("English tokens", f"{english.total():,}"),
        ("French tokens", f"{french.total():,}"),
        ("English word types", len(english)),
        ("French word types", len(french)),
        ("rarest English word", f"{min(english.values())} times"),
        ("rarest French word", f"{min(french.values())} times"),
        ("links", f"{total:,}"),
        ("links that cross another link", f"{crossing / total:.1%}"),
        ("pairs with crossing links", f"{sentences / len(pairs):.1%}"),
        ("English tokens without a link", f"{alone / english.total():.1%}"),
        ("French tokens without a link", f"{other / french.total():.1%}"),
    ]
    table = ["| what | number |", "| --- | ---: |"]
    table += [f"| {name} | {number} |" for name, number in rows]
    return "\n".join([*table, "", *more_statistics(pairs)])


def more_statistics(pairs):
    """Length histogram, ambiguous words and checksum, as Markdown lines."""
    lengths = Counter(longer_side(pair) for pair in pairs)
    short = sum(n for length, n in lengths.items() if length <= 16)
    table = ["| tokens of the longer side | pairs |", "| ---: | ---: |"]
    table += [f"| {length} | {n:,} |" for length, n in sorted(lengths.items())]
    table += [f"| 4 to 16 | {short:,} |"]
    table += [f"| 17 to 24 | {len(pairs) - short:,} |"]
    words = [
        f"{text} ({', '.join(f'{t} {n:,}' for t, n in c.most_common())})"
        for text, c in words_with_several_tags(pairs)
    ]
    digest = hashlib.sha256(as_bytes(pairs)).hexdigest()
    return [*table, "", "; ".join(words), "", f"SHA-256 `{digest}`"]


def main():
    """Write the corpus, or print the numbers for the README."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    parser.add_argument("--statistics", action="store_true")
    arguments = parser.parse_args()
    pairs = generate()
    check(pairs)
    write(arguments.output, as_bytes(pairs))
    print(f"{arguments.output}: {len(pairs):,} pairs")
    if arguments.statistics:
        print(statistics(pairs))


if __name__ == "__main__":
    main()
