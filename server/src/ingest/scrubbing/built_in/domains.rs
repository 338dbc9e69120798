//! Domains under which people have addresses.

/// Top-level domains of two letters. Others, such as in `hero@large.js` and `Cart@3f2a1b.go`, are no domains.
pub(super) const COUNTRIES: &str = "ac ad ae af ag ai al am ao ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bv bw by \
    bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gb gd ge gf gg \
    gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la \
    lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om \
    pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st su sv sx sy sz tc td tf \
    tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw";

/// Top-level domains of more than two letters under which most people have addresses.
pub(super) const PEOPLE: &str = "com net org info biz edu gov mil name int";

/// Other top-level domains that are open to people, and those of private networks. Those of brands, such as `pay`, are missing.
pub(super) const OPEN: &str = "abogado academy accountant accountants actor ads adult aero africa agency airforce amsterdam analytics \
    android apartments app archi army art asia associates attorney auction audio auto autos baby band bank bar barcelona bargains \
    basketball bayern beauty beer berlin best bet bible bid bike bingo bio black blackfriday blog blue boats bond boo boston boutique \
    broker brussels build builders business buzz bzh cab cafe cal camera camp capetown capital cards care career careers cars casa case \
    cash casino cat catering center ceo cfd channel charity chat cheap christmas chrome church city claims cleaning click clinic clothing \
    cloud club coach codes coffee college cologne community company compare computer condos construction consulting contact contractors \
    cooking cool coop corp country coupon coupons courses cpa credit creditcard creditunion cricket cruise cruises cyou dad dance date \
    dating day dclk deals degree delivery democrat dental dentist desi design dev diamonds diet digital direct directory discount docs \
    doctor dog domains dot download drive durban earth eat eco education email energy engineer engineering enterprises equipment esq \
    estate eus events exchange expert exposed express fail faith family fan fans farm fashion feedback film final finance financial fish \
    fishing fit fitness flights florist flowers fly foo football forex forsale forum foundation free fun fund furniture futbol fyi gal \
    gallery game games garden gay gbiz gifts gives giving glass gle global gmail gmbh gold golf goog google gop graphics gratis green \
    gripe group guge guide guitars guru hair hamburg hangout haus health healthcare helsinki here hiphop hiv hockey holdings holiday homes \
    horse hospital host hosting hot house how icu immo immobilien inc industries ing ink institute insurance insure internal international \
    intranet investments irish ist istanbul jetzt jewelry jobs joburg joy juegos kaufen kids kim kitchen kiwi koeln krd kyoto lan land lat \
    law lawyer lease legal lgbt life lighting limited limo link live llc llp loan loans local localdomain locker lol london lotto love ltd \
    luxe luxury madrid maison makeup management market marketing markets mba med media meet melbourne meme memorial men menu miami mobi \
    moda moe mom money monster mortgage moscow motorcycles mov movie museum music nagoya navy network new news nexus ngo ninja nrw nyc \
    observer okinawa one ong onion onl online ooo organic osaka ovh page paris partners parts party pet pharmacy phd photo photography \
    photos physio pics pictures pid pink pizza place play plumbing plus poker porn post press pro prod productions prof promo properties \
    property protection pub quebec quest racing radio realestate realtor realty recipes red rehab reise reisen ren rent rentals repair \
    report republican restaurant review reviews rich rio rip rocher rocks rodeo rsvp rugby ruhr run saarland sale salon sarl sbs school \
    schule science scot search secure security seek select services sex sexy shiksha shoes shop shopping show singles site ski skin soccer \
    social software solar solutions soy spa space sport spot srl stockholm storage store stream studio study style sucks supplies supply \
    support surf surgery swiss sydney systems taipei tatar tax taxi team tech technology tel tennis theater theatre tickets tienda tips \
    tires tirol today tokyo tools top tours town toys trade trading training travel trust tube university uno vacations vegas ventures \
    versicherung vet viajes video villas vin vip vision viva vlaanderen vodka vote voting voto voyage wales wang watch watches weather \
    webcam website wedding wien wiki win wine work works world wtf xxx xyz yachts yoga yokohama you youtube yun zero zip zone zuerich";
