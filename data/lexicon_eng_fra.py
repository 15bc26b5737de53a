"""The words that make_eng_fra.py builds its English-French sentences from.

Every table is plain text, one entry per line, so that a reader can check the
French at a glance and add a word without touching the grammar.  A lone "-"
means "this form is not used".
"""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun in both languages, with its French gender and its classes."""

    singular: str
    plural: str
    french: str
    french_plural: str
    gender: str
    labels: tuple


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective with its four French forms and its place in French."""

    english: str
    forms: dict
    before: bool
    labels: tuple


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb: English forms, French forms, and what it goes with.

    `particle` follows the English verb ("look for"); `tail` follows the
    French one ("parler à", "avoir besoin de").
    """

    base: str
    third: str
    ing: str
    particle: str
    french: dict
    tail: str
    subjects: tuple
    objects: tuple
    places: tuple
    adverbs: tuple


# singular plural | french plural | gender | classes
# mass: no plural, partitive article; kin: used with a possessive.
NOUNS = """
boy boys garçon garçons m person,child
girl girls fille filles f person,child
man men homme hommes m person
woman women femme femmes f person
child children enfant enfants m person,child
friend friends ami amis m kin
neighbor neighbors voisin voisins m person,kin
teacher teachers professeur professeurs m person,job
student students étudiant étudiants m person,job
doctor doctors médecin médecins m person,job
farmer - fermier - m person,job
cook - cuisinier - m person,job
guide - guide - m person,job
nurse - infirmière - f person,job
actress - actrice - f person,job
mother - mère - f kin
father - père - m kin
sister sisters sœur sœurs f kin
brother brothers frère frères m kin
grandmother - grand-mère - f kin
grandfather - grand-père - m kin
aunt - tante - f kin
uncle - oncle - m kin
daughter - fille - f kin
dog dogs chien chiens m animal,pet
cat cats chat chats m animal,pet
bird birds oiseau oiseaux m animal,flier
horse horses cheval chevaux m animal,farm
cow - vache - f animal,farm
mouse - souris - f animal
owl - hibou - m animal,flier
apple apples pomme pommes f food,fruit
orange oranges orange oranges f food,fruit
egg eggs œuf œufs m food
cake cakes gâteau gâteaux m food,baked
bread - pain - m food,mass,baked
cheese - fromage - m food,mass
meat - viande - f food,mass,cooked
rice - riz - m food,mass,cooked
fish - poisson - m food,mass,cooked
soup - soupe - f food,mass,cooked
water - eau - f liquid,mass
milk - lait - m liquid,mass
tea - thé - m liquid,mass
coffee - café - m liquid,mass
drink drinks boisson boissons f drink
paint - peinture - f mass,paint
book books livre livres m text,thing
letter letters lettre lettres f text,mail
newspaper - journal - m text
story stories histoire histoires f text,tale
dress dresses robe robes f clothes
shirt shirts chemise chemises f clothes
coat - manteau - m clothes
hat - chapeau - m clothes
- shoes - chaussures f clothes
watch - montre - f jewel,thing
car cars voiture voitures f vehicle
bike bikes vélo vélos m vehicle
boat - bateau - m boat
bus - bus - m transport
train - train - m transport
table tables table tables f furniture
chair chairs chaise chaises f furniture
bed - lit - m furniture
door doors porte portes f opening
window - fenêtre - f opening
box boxes boîte boîtes f holder
bag - sac - m holder,thing
key keys clé clés f thing,small
gift - cadeau - m thing,mail
ball - ballon - m thing,small
flower flowers fleur fleurs f flora
tree trees arbre arbres m flora
plant plants plante plantes f flora
song songs chanson chansons f sound,tale
music - musique - f sound,mass
photo photos photo photos f mail,image
film - film - m screen
play - pièce - f screen,event
show - spectacle - m screen,event
dance - danse - f screen
walk - promenade - f event
visit - visite - f event
work - travail - m mass,task
help - aide - f mass,aid
love - amour - m mass,love
dream dreams rêve rêves m tale
question questions question questions f ask
answer - réponse - f reply
smile - sourire - m smile
light - lumière - f light
kitchen - cuisine - f inside
room - chambre - f inside
house houses maison maisons f building
school - école - f building,sight
garden - jardin - m outside
park - parc - m outside,sight
market - marché - m outside
shop - magasin - m building
beach - plage - f outside
station - gare - f building
library - bibliothèque - f building
restaurant - restaurant - m building
hotel - hôtel - m building
hospital - hôpital - m building
theatre - théâtre - m building
forest - forêt - f outside
street - rue - f outside
river - rivière - f outside
village - village - m town,sight
city - ville - f town,sight
"""

# english | masc. fem. masc.pl. fem.pl. | place in French | classes
# Two French words for the masculine: "beau/bel" (before a vowel).
ADJECTIVES = """
big grand grande grands grandes before animal,vehicle,boat,furniture,\
opening,holder,building,outside,town,flora,gift,inside
small petit petite petits petites before child,animal,vehicle,boat,\
furniture,opening,holder,building,outside,town,thing,inside,cake,flora
beautiful beau/bel belle beaux belles before woman,actress,child,animal,\
clothes,flora,vehicle,boat,outside,town,building,song,story,image,smile,\
screen,jewel
old vieux/vieil vieille vieux vieilles before man,woman,friend,neighbor,\
animal,clothes,vehicle,boat,furniture,opening,building,town,book,jewel,\
image,farmer,doctor
new nouveau/nouvel nouvelle nouveaux nouvelles before clothes,vehicle,boat,\
furniture,text,thing,building,teacher,doctor,neighbor,friend,song,screen
young jeune jeune jeunes jeunes before person,animal,brother,sister
good bon bonne bons bonnes before friend,job,food,book,tale,screen,\
building,answer
pretty joli jolie jolis jolies before girl,woman,clothes,flora,town,\
building,outside,song,image,jewel,box,bag
long long longue longs longues before text,tale,event,dress,coat,street,\
visit,answer
red rouge rouge rouges rouges after clothes,vehicle,boat,furniture,\
opening,holder,ball,flower,apple,bird
blue bleu bleue bleus bleues after clothes,vehicle,boat,furniture,opening,\
holder,ball,flower,bird
green vert verte verts vertes after clothes,vehicle,boat,furniture,\
opening,holder,ball,apple,bird
black noir noire noirs noires after clothes,vehicle,animal,holder,chair
white blanc blanche blancs blanches after clothes,vehicle,boat,animal,\
furniture,opening,house,flower
orange orange orange orange orange after clothes,holder,ball,flower,bike
clean propre propre propres propres after clothes,vehicle,inside,window,\
furniture,house
light léger légère légers légères after holder,chair,coat,shoes,bike
open ouvert ouverte ouverts ouvertes after opening,box,bag,shop
interesting intéressant intéressante intéressants intéressantes after text,\
tale,screen,visit,task,ask,reply,town
funny drôle drôle drôles drôles after tale,book,screen,reply,image,child
difficult difficile difficile difficiles difficiles after ask,task,book
expensive cher chère chers chères after clothes,vehicle,jewel,restaurant,\
hotel,furniture
famous célèbre célèbre célèbres célèbres after actress,cook,song,\
book,screen,city
"""

# Adjectives that are only used after "be", with their subjects.
PREDICATES = """
tired fatigué fatiguée fatigués fatiguées person,kin,pet,farm
happy content contente contents contentes person,kin,pet
sick malade malade malades malades person,kin,animal
sad triste triste tristes tristes person,kin,child,song,story,film
calm calme calme calmes calmes person,kin,animal,river,park,beach,street
dirty sale sale sales sales clothes,vehicle,window,inside,house,dog,table
cold froid froide froids froides liquid,soup,meat,house
hot chaud chaude chauds chaudes liquid,soup,meat,rice,bread
"""

# english | je il vous ils infinitive future-sg future-pl | subjects |
# objects | places | manner adverbs; "look+for" has a particle.
VERBS = """
eat eats eating|mange mange - mangent manger mangera mangeront|person,kin|\
food|kitchen garden restaurant park|slowly quickly together
drink drinks drinking|- boit - boivent boire - -|person,kin|liquid,drink|\
kitchen garden restaurant|slowly quickly
buy buys buying|achète achète - achètent acheter achètera -|person,kin|food,\
clothes,vehicle,furniture,text,thing,flora,paint,boat|market shop|-
sell sells selling|- vend - vendent vendre - -|person,kin|food,clothes,flora,\
vehicle,text,boat,farm|market shop|-
read reads reading|lis lit - lisent lire lira -|person,kin|text|library \
garden park kitchen school|slowly calmly
write writes writing|- écrit - écrivent écrire - -|person,kin|letter,story,\
book,song,play|library garden kitchen|slowly
see sees seeing|vois voit - voient voir - -|person,kin|animal,person,kin,\
vehicle,boat,transport,building,flora,thing,light,screen|garden street park \
forest|-
watch watches watching|regarde regarde - regardent regarder - -|person,kin,\
pet|animal,screen,child,kin,boat|garden park|calmly
like likes -|aime aime aimez aiment aimer - -|person,kin|animal,food,liquid,\
text,tale,clothes,flora,screen,sound,town,outside,event,task|-|-
love loves -|adore adore - adorent adorer - -|person,kin|animal,food,liquid,\
tale,flora,screen,sound,town,outside,event|-|-
wash washes washing|lave lave - lavent laver lavera -|person,kin|vehicle,\
clothes,window,horse,dog|garden street|carefully quickly
clean cleans cleaning|nettoie nettoie - nettoient nettoyer - -|person,kin|\
inside,house,shop,window,table,vehicle,boat,shoes,holder|-|carefully quickly
water waters watering|arrose arrose - arrosent arroser - -|person,kin|flora,\
garden|garden park|carefully
plant plants planting|plante plante - plantent planter - -|person,kin|flora|\
garden park|carefully
open opens opening|ouvre ouvre - ouvrent ouvrir ouvrira -|person,kin|opening,\
holder,mail,shop|-|carefully slowly calmly
close closes closing|ferme ferme - ferment fermer - -|person,kin|opening,\
holder,shop,book|-|carefully calmly
look+for looks looking|cherche cherche - cherchent chercher - -|person,kin|\
thing,clothes,person,pet,mail,aid|garden street kitchen|calmly
find finds finding|trouve trouve - trouvent trouver - -|person,kin|thing,\
clothes,pet,mail,flora,answer|street garden park|quickly
carry carries carrying|porte porte - portent porter - -|person,kin|holder,\
furniture,gift,flora|-|slowly carefully
wear wears wearing|porte porte - portent porter - -|person,kin|clothes,jewel|\
-|-
listen+to listens listening|écoute écoute - écoutent écouter - -|person,kin|\
sound,story,person,kin,bird,owl|garden park|calmly
wait+for waits waiting|- attend - attendent attendre attendra -|person,kin|\
person,kin,transport,mail,reply|station street|calmly
help helps helping|aide aide - aident aider aidera aideront|person,kin|\
person,kin|garden kitchen school hospital|-
visit visits visiting|visite visite - visitent visiter - -|person,kin|sight,\
house|-|-
book books booking|réserve réserve - réservent réserver - -|person,kin|room|\
hotel|-
cook cooks cooking|cuisine cuisine - cuisinent cuisiner - -|person,kin|\
cooked|kitchen restaurant|well slowly
paint paints painting|- peint - peignent peindre - -|person,kin|opening,\
furniture,house,boat,kitchen,flora|garden|carefully slowly
draw draws drawing|dessine dessine - dessinent dessiner - -|person,kin|\
animal,flora,house,boat,vehicle,child|school garden park|well quickly \
carefully
repair repairs repairing|répare répare - réparent réparer - -|person,kin|\
vehicle,boat,furniture,opening,watch|garden street|well carefully
take takes taking|- prend - prennent prendre prendra -|person,kin|transport,\
thing,photo|-|-
park parks parking|gare gare - garent garer - -|person,kin|car|street \
station park|carefully slowly
sing sings singing|chante chante - chantent chanter chantera -|person,kin,\
bird|song|garden theatre park school street|well calmly together
play plays playing|joue joue - jouent jouer jouera joueront|person,kin,pet|-|\
garden park street beach|calmly together
dance dances dancing|danse danse - dansent danser dansera -|person,kin|-|\
theatre park street garden|well together
walk walks walking|marche marche - marchent marcher - -|person,kin,animal|-|\
park forest street beach|slowly quickly together
work works working|travaille travaille - travaillent travailler travaillera \
-|person,kin|-|market shop restaurant library hotel hospital theatre station \
garden|well slowly together
sleep sleeps sleeping|- dort - dorment dormir - -|person,kin,pet|-|room \
hotel house garden|well
run runs running|- court - courent courir - -|person,kin,pet,farm|-|park \
street forest beach garden|quickly slowly
swim swims swimming|nage nage - nagent nager - -|person,kin,dog|-|river|well \
slowly together
smile smiles smiling|- sourit - sourient sourire - -|person,kin|-|-|-
fish fishes fishing|pêche pêche - pêchent pêcher - -|person,kin|-|river|\
calmly together
dream+of dreams dreaming|rêve rêve - rêvent rêver - -|de|person,kin|house,\
animal,beach,vehicle,boat,love,town|-|-
talk+to talks talking|parle parle - parlent parler parlera -|à|person,kin|\
person,kin,pet|garden street kitchen park school|slowly calmly
answer answers answering|- répond - répondent répondre - -|à|person,kin|ask,\
letter,person,kin|-|quickly slowly well
need needs -|- a - ont avoir - -|besoin de|person,kin|thing,aid,vehicle,\
clothes,liquid,paint,person|-|-
have has -|ai a avez ont avoir - -|person,kin|vehicle,clothes,pet,thing,\
ask,dream,boat,house,garden|-|-
fly flies flying|vole vole - volent voler - -|flier|-|forest garden|slowly \
quickly
"""

# Verbs of giving: "give the book to him".
GIVING = """
give gives giving|donne donne - donnent donner donnera -|person,kin|thing,\
flora,fruit,clothes,liquid,food,pet,photo|-|-
show shows showing|montre montre - montrent montrer montrera -|person,kin|\
thing,image,animal,vehicle,clothes,house,text,flora|-|-
send sends sending|envoie envoie - envoient envoyer - -|person,kin|mail,book,\
flower,photo|-|-
bring brings bringing|apporte apporte - apportent apporter - -|person,kin|\
food,liquid,drink,thing,flower,newspaper|-|-
tell tells telling|raconte raconte - racontent raconter - -|person,kin|story,\
dream|-|-
"""

# Verbs of speech and thought: "think that ...".
SAYING = """
think thinks thinking|pense pense pensez pensent penser - -|person,kin|-|-|-
know knows -|sais sait savez savent savoir - -|person,kin|-|-|-
say says saying|- dit - disent dire - -|person,kin|-|-|-
hope hopes hoping|espère espère - espèrent espérer - -|person,kin|-|-|-
"""

# Motion and rest, with their own frames in the grammar.
MOVING = """
go goes going|vais va allez vont aller ira iront|person,kin|-|-|-
stay stays staying|reste reste - restent rester - -|person,kin|-|garden \
house hotel school kitchen beach|calmly together
live lives -|habite habite - habitent habiter - -|person,kin|-|village city \
house|-
put puts putting|- met - mettent mettre - -|person,kin|thing,mail,text,fruit,\
clothes,bread,cheese,cake|-|carefully
make makes making|- fait - font faire fera -|person,kin|baked,soup,liquid|\
kitchen restaurant|well
"""

# english | je il vous ils | French preposition before the infinitive.
MODALS = """
can can peux peut pouvez peuvent -
must must dois doit devez doivent -
want+to wants veux veut voulez veulent -
like+to likes aime aime aimez aiment -
try+to tries essaie essaie - essaient de
start+to starts commence commence - commencent à
learn+to learns - apprend - apprennent à
"""

# noun | "in the ...", in French | "to the ...", in French
PLACES = """
kitchen in dans to dans
room in dans - -
house in dans - -
school at à to à
garden in dans to dans
park in dans to à
market at à to à
shop in dans to à
beach on sur to à
station at à to à
library in dans to à
restaurant at à to à
hotel at à to à
hospital at à to à
theatre at à to à
forest in dans to dans
street in dans - -
river in dans - -
village in dans - -
city in dans - -
"""

# english | french, with their tags: when something happens.
HABITS = """
every day|DET NOUN|tous les jours|DET DET NOUN|0-0 0-1 1-2
every morning|DET NOUN|tous les matins|DET DET NOUN|0-0 0-1 1-2
every evening|DET NOUN|tous les soirs|DET DET NOUN|0-0 0-1 1-2
every week|DET NOUN|toutes les semaines|DET DET NOUN|0-0 0-1 1-2
in the morning|ADP DET NOUN|le matin|DET NOUN|1-0 2-1
in the evening|ADP DET NOUN|le soir|DET NOUN|1-0 2-1
on sunday|ADP NOUN|le dimanche|DET NOUN|1-1
in summer|ADP NOUN|en été|ADP NOUN|0-0 1-1
in winter|ADP NOUN|en hiver|ADP NOUN|0-0 1-1
"""
NOW = """
now|ADV|maintenant|ADV|0-0
this morning|DET NOUN|ce matin|DET NOUN|0-0 1-1
"""
LATER = """
tomorrow|ADV|demain|ADV|0-0
tonight|ADV|ce soir|DET NOUN|0-0 0-1
next week|ADJ NOUN|la semaine prochaine|DET NOUN ADJ|0-2 1-1
in the evening|ADP DET NOUN|le soir|DET NOUN|1-0 2-1
"""
PAST = """
yesterday|ADV|hier|ADV|0-0
this morning|DET NOUN|ce matin|DET NOUN|0-0 1-1
last week|ADJ NOUN|la semaine dernière|DET NOUN ADJ|0-2 1-1
yesterday evening|ADV NOUN|hier soir|ADV NOUN|0-0 1-1
"""

MANNER = {
    "slowly": "lentement",
    "quickly": "rapidement",
    "well": "bien",
    "carefully": "soigneusement",
    "calmly": "calmement",
    "together": "ensemble",
}
FREQUENCY = {
    "often": "souvent",
    "always": "toujours",
    "sometimes": "parfois",
}
NUMBERS = {
    "two": "deux",
    "three": "trois",
    "four": "quatre",
    "five": "cinq",
    "six": "six",
    "ten": "dix",
}
# masculine, feminine, plural
DETERMINERS = {
    "the": ("le", "la", "les"),
    "a": ("un", "une", "des"),
    "this": ("ce", "cette", "ces"),
    "that": ("ce", "cette", "ces"),
    "these": ("ce", "cette", "ces"),
    "those": ("ce", "cette", "ces"),
    "which": ("quel", "quelle", "quels"),
    "my": ("mon", "ma", "mes"),
    "your": ("votre", "votre", "vos"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "its": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
NAMES = {"marie": "f", "emma": "f", "julie": "f"}
NAMES.update({"paul": "m", "thomas": "m", "adam": "m"})

# past tense with "être": english | m f mpl fpl
PAST_VERBS = """
went allé allée allés allées
arrived arrivé arrivée arrivés arrivées
stayed resté restée restés restées
"""

# Words that begin with h or a vowel letter but take no elision.
ASPIRATED = {"hibou"}


def lines(table):
    """Non-empty lines of a table."""
    return [line for line in table.splitlines() if line.strip()]


def rows(table, separator=None):
    """The lines of a table as tuples of fields."""
    return [tuple(line.split(separator)) for line in lines(table)]


def is_active(verb):
    """Whether a verb says what somebody does, not how things are."""
    return verb.base not in STATES


def read_nouns():
    """The noun table as a list of Noun."""
    nouns = []
    for line in lines(NOUNS):
        *forms, labels = line.split()
        nouns.append(Noun(*forms, tuple(labels.split(","))))
    return nouns


def read_adjectives(table):
    """An adjective table as a list of Adjective."""
    adjectives = []
    for line in lines(table):
        english, m, f, mp, fp, *rest = line.split()
        place = "after" if len(rest) == 1 else rest[0]
        masculine, _, vowel = m.partition("/")
        forms = {"m": masculine, "f": f, "mp": mp, "fp": fp}
        forms["vowel"] = vowel or masculine
        labels = tuple(rest[-1].split(","))
        adjectives.append(Adjective(english, forms, place == "before", labels))
    return adjectives


def read_verbs(table):
    """A verb table as a list of Verb."""
    verbs = []
    for line in lines(table):
        english, french, *rest = line.split("|")
        tail = rest.pop(0) if len(rest) == 5 else ""
        base, third, ing = english.split()
        base, _, particle = base.partition("+")
        names = ("i", "he", "you", "they", "infinitive", "will", "will_they")
        forms = dict(zip(names, french.split(), strict=True))
        subjects, objects = (tuple(c.split(",")) for c in rest[:2])
        places, adverbs = (tuple(c.replace("-", "").split()) for c in rest[2:])
        objects = () if objects == ("-",) else objects
        verbs.append(
            Verb(
                base,
                third,
                ing,
                particle,
                forms,
                tail,
                subjects,
                objects,
                places,
                adverbs,
            )
        )
    return verbs


# Which infinitives a modal goes with; "*" is every verb of action.
MODAL_USES = {
    "can": "*",
    "must": "*",
    "want+to": "*",
    "like+to": "eat drink read write watch visit cook paint draw sing play "
    "dance walk run swim fish listen help work sleep buy plant talk",
    "try+to": "open close find repair help sleep answer read draw sing dance "
    "swim write cook paint buy sell clean",
    "start+to": "eat read write wash clean work sing dance paint draw cook "
    "play plant run",
    "learn+to": "read write swim dance sing cook draw paint repair park fish",
}
# Verbs of state: no progressive, no time, no modal.
STATES = "like love need have know think say hope live wear dream see".split()
# A verb whose object is known: "washes the car", not "washes cars".
DEFINITE = (
    "wash clean water open close wait listen help answer repair talk "
    "visit park carry look find book"
).split()
# Where a place only makes sense with some objects.
PLACE_NEEDS = {
    "water": "flora",
    "buy": "food clothes flora text",
    "sell": "food clothes flora text",
    "see": "animal person",
    "watch": "animal child",
    "wait": "transport person kin",
    "look": "thing pet",
    "find": "thing pet",
    "wash": "vehicle farm pet",
    "listen": "sound bird owl",
    "help": "kin person",
    "draw": "animal flora house boat",
    "paint": "furniture boat flora",
    "repair": "vehicle furniture boat",
}
# What one does next with the object: "buys a car and washes it".
FOLLOW_UPS = {
    "buy": "eat drink read wash cook paint plant water repair open wear carry "
    "give show bring",
    "find": "wash close open read carry eat repair show bring",
    "take": "open close show",
    "open": "read clean close",
    "wash": "paint sell repair eat park clean",
    "see": "draw watch buy",
    "write": "read send sing close",
    "look": "find",
    "plant": "water",
    "repair": "sell paint clean wash",
    "paint": "sell show clean",
    "draw": "show paint watch",
    "cook": "eat bring",
    "read": "close show send",
    "wait": "help",
    "clean": "close paint sell repair",
    "carry": "open close wash",
}
# What one does not do all the same: "buys the book, but does not read it".
CONTRASTS = {
    "buy": "eat drink read wash like wear repair",
    "look": "find see",
    "find": "open take read like",
    "see": "like wash buy take",
    "open": "read close",
    "read": "like",
    "watch": "like",
    "write": "send like",
    "wait": "see",
    "wash": "wear like repair",
    "sell": "like",
    "listen": "like see",
    "carry": "open like",
    "have": "read like take wash wear",
    "cook": "like eat",
    "wear": "like wash",
    "clean": "like sell",
    "paint": "like sell",
    "repair": "sell like",
}
# Verbs that sound odd in the progressive.
SUDDEN = ("find", "see", "have")
# Verbs that the weather can be a reason against, and for.
OUTDOOR = "play walk run swim go fish dance".split()
INDOOR = "stay sleep".split()
# Where things, plants and animals are: classes | places.
THERE = """
animal|garden park forest street
food,liquid|kitchen
table,chair|kitchen house garden
person|street park station market shop
flora|garden park forest
text,image|library house school
thing,clothes|shop house
vehicle|street
boat|river
light|house kitchen forest garden
"""
# "The keys are on the table": classes | preposition, in French, nouns.
LOCATED = """
thing,text,photo,hat|on sur table chair bed
thing,text,photo,hat|in dans box bag
thing,text,photo,hat|under sous table chair bed
thing,text,photo,hat|near près+de door window bed
thing,text,photo,hat|behind derrière door box
pet|under sous table chair tree bed
pet|behind derrière door house tree
pet|near près+de window house river
vehicle|behind derrière house school
vehicle|near près+de house school park
"""
# Where one puts things: classes | as above.
PUT = """
thing,mail,text,fruit,bread,cheese,cake|on sur table chair
clothes|on sur bed chair
key,letter,book,photo,newspaper|in dans box bag
ball,gift,bag|under sous chair bed table
"""
# Why: verb | classes of its object | what the subject is | what the object is.
REASONS = """
eat|food|hungry|good
drink|liquid,drink|thirsty|cold hot
cook|cooked|hungry|-
buy|food|hungry|good
buy|clothes,flora,screen,jewel,text|-|beautiful pretty interesting
read|text|-|interesting funny
watch|screen|-|interesting funny
visit|sight,house|-|beautiful interesting
wear|coat|cold|beautiful
wear|clothes,jewel|-|beautiful pretty
close|opening|cold|-
open|opening|hot|-
sleep|-|tired|-
smile|-|happy|-
dance|-|happy|-
wash|clothes,vehicle,window,dog|-|dirty
clean|inside,house,window,table|-|dirty
help|person,kin|-|tired sick sad
carry|holder|-|light
sell|vehicle,boat,furniture|-|old
repair|vehicle,boat,furniture|-|old
paint|furniture,boat,house|-|old
"""
# Verbs that one does because one likes the object.
LIKING = "buy read watch visit draw sing listen take eat drink".split()
# "To buy bread": verbs of purpose.
PURPOSES = "buy eat drink read see help watch visit work play dance".split()
# "What does she eat?", "which book does she read?": verbs of such questions.
ASKED = "eat drink buy sell read write watch wash wear cook draw paint".split()
# "Be hungry" is "avoir faim".
FEELINGS = {
    "hungry": "faim",
    "thirsty": "soif",
    "cold": "froid",
    "hot": "chaud",
}
# What "i" and "you" can be: the French has one form for all.
EVERYBODY = "young famous sick sad calm funny".split()
# Of these, something has one at most: no "old man" is "young".
SAME_QUALITY = (
    "young old new", "big small", "long small", "clean dirty", "hot cold",
    "happy sad funny", "tired sick", "beautiful pretty", "good famous",
    "red blue green black white orange", "calm funny",
)  # fmt: skip
# Qualities that "very" does not go with, and those that "too" goes with.
ABSOLUTE = "open sick red blue green black white orange".split()
EXCESSIVE = (
    "big small long expensive difficult tired sad hot cold dirty".split()
)
# What something or somebody can become: "the soup will be hot".
PASSING = "tired happy sick sad calm clean hot cold interesting funny".split()
# Classes of things that one can describe: "the car is old".
DESCRIBABLE = (
    "clothes vehicle furniture holder building town text tale screen event "
    "outside flora opening inside boat ask reply jewel task soup liquid image "
    "smile"
).split()
CONJUNCTIONS = {
    "and": ("et", "CCONJ"),
    "but": ("mais", "CCONJ"),
    "because": ("parce que", "SCONJ"),
    "when": ("quand", "SCONJ"),
    "while": ("pendant que", "SCONJ"),
    "if": ("si", "SCONJ"),
    "that": ("que", "SCONJ"),
}
ELIDED = {"le": "l'", "la": "l'", "je": "j'", "me": "m'", "ne": "n'"}
ELIDED |= {"de": "d'", "que": "qu'"}
BEFORE_VOWEL = {"ma": "mon", "sa": "son", "ce": "cet"}
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des"}
CONTRACTED |= {("à", "le"): "au", ("à", "les"): "aux"}
SUBJECT_PRONOUNS = {
    "i": ("je", "m", False, "i"),
    "you": ("vous", "m", False, "you"),
    "he": ("il", "m", False, "he"),
    "she": ("elle", "f", False, "he"),
    "they": ("ils", "m", True, "they"),
}
# English object form, direct clitic, indirect clitic
OBJECT_PRONOUNS = {
    "i": ("me", "me", "me"),
    "you": ("you", "vous", "vous"),
    "he": ("him", "le", "lui"),
    "she": ("her", "la", "lui"),
    "they": ("them", "les", "leur"),
}
CLITIC_ORDER = {"me": 1, "vous": 1, "le": 2, "la": 2, "les": 2}
CLITIC_ORDER |= {"lui": 3, "leur": 3}
OWNERS = {"i": "my", "you": "your", "he": "his", "she": "her", "it": "its"}
OWNERS["they"] = "their"
BE = {"i": "am", "you": "are", "he": "is", "they": "are"}
ETRE = {"i": "suis", "you": "êtes", "he": "est", "they": "sont"}
TAIL_TAGS = {"": "", "à": "ADP", "de": "ADP", "besoin de": "NOUN ADP"}
# The kinds of main clauses, and how often they are tried.
FRAMES = {
    "statement": 9,
    "be_clause": 3,
    "feeling_clause": 1.2,
    "there_clause": 2,
    "giving_clause": 3,
    "going_clause": 2.5,
    "past_clause": 1.8,
    "putting_clause": 1.2,
    "located_clause": 1.5,
    "this_is": 1.2,
    "job_clause": 0.4,
    "relative_sentence": 3.5,
    "object_relative_sentence": 1.5,
    "follow_up": 4,
    "contrast": 2,
    "conditional": 2,
}
# Those that can grow long.
LONG_FRAMES = (
    "statement giving_clause going_clause relative_sentence "
    "object_relative_sentence follow_up contrast conditional"
).split()
WEATHER = """
it is raining|PRON AUX VERB|il pleut|PRON VERB|0-0 1-1 2-1
it rains|PRON VERB|il pleut|PRON VERB|0-0 1-1
it is cold|PRON AUX ADJ|il fait froid|PRON VERB NOUN|0-0 1-1 2-2
it is hot|PRON AUX ADJ|il fait chaud|PRON VERB NOUN|0-0 1-1 2-2
"""
# Tags of the words that a sentence has once at most.
UNREPEATED = ("NOUN", "PROPN", "VERB")
# What nobody calls "my" or "her".
PUBLIC = (
    "bus train hospital library theatre station beach forest river street "
    "market restaurant hotel park village city light tree"
).split()
