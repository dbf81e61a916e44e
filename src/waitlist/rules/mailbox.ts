/**
 * Mailboxes behind addresses: which spellings a well-known provider delivers to one mailbox, as it documents. Of other
 * domains nothing is known, so no two of their addresses are taken for one. Addresses are keys: in ASCII lower case.
 *
 * Each contact is stored with its mailbox, so a rule that changes needs a migration.
 */

interface Spelling {
  /** The domain that a mailbox is named by, for those with several. */
  readonly domain?: string
  /** Characters of the local part that make no difference. */
  readonly ignored?: RegExp
  /** What begins a part that makes no difference. */
  readonly tag?: '+' | '-'
}

/**
 * Dots: support.google.com/mail/answer/7436150, for gmail.com, not for the domains of companies. The plus and
 * googlemail.com: support.google.com/mail.
 */
const google: Spelling = { domain: 'gmail.com', ignored: /\./g, tag: '+' }
/** Announced for Outlook.com in September 2013; "Plus addressing" on learn.microsoft.com, for Exchange Online. */
const microsoft: Spelling = { tag: '+' }
/**
 * Who has an address in mac.com has it in me.com and icloud.com, and who has one in me.com has it in icloud.com
 * (support.apple.com). The plus is known from its users alone, but Apple gives nobody an address that has one.
 */
const apple: Spelling = { domain: 'icloud.com', tag: '+' }
/** Dots, dashes and underscores: proton.me/support/change-username. Plus and domains: proton.me/support/addresses-and-aliases. */
const proton: Spelling = { domain: 'proton.me', ignored: /[._-]/g, tag: '+' }
/** "Plus addressing and subdomain addressing": fastmail.help/hc/en-us/articles/360060591053. */
const fastmail: Spelling = { tag: '+' }
/** Temporary addresses have a name of their own before a dash, which no other address has: help.yahoo.com. */
const yahoo: Spelling = { tag: '-' }
/** Every mailbox is in all of these domains: yandex.com/support/domain/additional/mailbox-alias.xml. */
const yandex: Spelling = { domain: 'yandex.ru' }

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

const spellings = new Map<string, Spelling>(
  (
    [
      [google, 'gmail.com googlemail.com'],
      [
        microsoft,
        `outlook.com outlook.fr outlook.de outlook.es outlook.it outlook.jp outlook.kr outlook.pt outlook.at outlook.be
        outlook.dk outlook.ie outlook.in outlook.com.br outlook.com.au outlook.com.ar outlook.com.tr outlook.co.th
        hotmail.com hotmail.co.uk hotmail.fr hotmail.de hotmail.es hotmail.it hotmail.nl hotmail.be hotmail.se hotmail.ca
        hotmail.co.jp hotmail.com.br hotmail.com.ar hotmail.com.tr hotmail.com.au live.com live.co.uk live.fr live.de
        live.nl live.it live.be live.se live.dk live.no live.ca live.jp live.cn live.com.au live.com.mx live.com.pt msn.com`,
      ],
      [apple, 'icloud.com me.com mac.com'],
      [proton, 'proton.me protonmail.com protonmail.ch pm.me'],
      [fastmail, 'fastmail.com fastmail.fm'],
      [
        yahoo,
        `yahoo.com yahoo.co.uk yahoo.fr yahoo.de yahoo.it yahoo.es yahoo.ca yahoo.in yahoo.co.in yahoo.co.id yahoo.com.br
        yahoo.com.ar yahoo.com.mx yahoo.com.au yahoo.com.tw yahoo.com.hk yahoo.com.sg yahoo.com.ph yahoo.com.vn yahoo.gr
        yahoo.ie yahoo.se yahoo.no yahoo.dk yahoo.pl yahoo.ro ymail.com rocketmail.com`,
      ],
      [yandex, 'yandex.ru ya.ru yandex.com yandex.by yandex.kz yandex.ua'],
    ] as const
  ).flatMap(([spelling, domains]) => words(domains).map(domain => [domain, spelling] as const)),
)

/**
 * Domains in which strangers to each other have mailboxes: those of npm's `email-providers` (`common.json`) that give any
 * out today, with the regional ones that it lacks. Not complete, and it need not be: somebody in another domain is held
 * after many others, and lost never.
 */
const others: ReadonlySet<string> = new Set(
  words(`
    aol.com aol.co.uk aol.fr aol.de aim.com verizon.net netscape.net gmx.com gmx.de gmx.net gmx.at gmx.ch gmx.fr gmx.us
    gmx.co.uk mail.com email.com usa.com doctor.com lawyer.com web.de t-online.de freenet.de arcor.de online.de 1und1.de
    posteo.de posteo.net mailbox.org tutanota.com tutanota.de tuta.com tuta.io tutamail.com keemail.me hushmail.com
    hey.com zoho.com zohomail.com zohomail.eu runbox.com mailfence.com disroot.org riseup.net pobox.com startmail.com
    migadu.com privaterelay.appleid.com duck.com mozmail.com simplelogin.com anonaddy.me addy.io passmail.net passinbox.com

    orange.fr wanadoo.fr free.fr sfr.fr neuf.fr laposte.net bbox.fr numericable.fr aliceadsl.fr cegetel.net
    club-internet.fr libero.it virgilio.it alice.it tin.it tim.it tiscali.it tiscali.co.uk poste.it iol.it inwind.it
    blu.it fastwebnet.it email.it terra.es telefonica.net movistar.es wanadoo.es sapo.pt iol.pt clix.pt
    telenet.be skynet.be proximus.be scarlet.be ziggo.nl kpnmail.nl kpnplanet.nl planet.nl home.nl hetnet.nl chello.nl
    xs4all.nl upcmail.nl bluewin.ch hispeed.ch sunrise.ch aon.at chello.at a1.net
    btinternet.com btopenworld.com btconnect.com bt.com sky.com talktalk.net talktalk.co.uk virginmedia.com virgin.net
    ntlworld.com blueyonder.co.uk freeserve.co.uk o2.co.uk eircom.net
    telia.com spray.se bredband.net comhem.se online.no getmail.no c2i.net mail.dk tdcadsl.dk stofanet.dk luukku.com
    saunalahti.fi kolumbus.fi suomi24.fi hot.ee mail.ee inbox.lv inbox.lt apollo.lv one.lt
    wp.pl o2.pl interia.pl interia.eu onet.pl onet.eu op.pl vp.pl poczta.onet.pl poczta.fm gazeta.pl tlen.pl
    seznam.cz email.cz post.cz centrum.cz atlas.cz volny.cz azet.sk zoznam.sk centrum.sk post.sk
    freemail.hu citromail.hu indamail.hu t-online.hu abv.bg mail.bg dir.bg otenet.gr forthnet.gr
    mail.ru inbox.ru list.ru bk.ru internet.ru rambler.ru lenta.ru autorambler.ru myrambler.ru ro.ru yandex.com.tr
    ukr.net i.ua meta.ua bigmir.net tut.by mail.kz mynet.com

    comcast.net att.net sbcglobal.net bellsouth.net pacbell.net swbell.net ameritech.net charter.net spectrum.net rr.com
    roadrunner.com twc.com cox.net earthlink.net mindspring.com juno.com netzero.net frontier.com frontiernet.net
    optimum.net optonline.net centurylink.net centurytel.net windstream.net embarqmail.com q.com qwest.net
    cableone.net suddenlink.net wowway.com tds.net mchsi.com ptd.net prodigy.net rcn.com excite.com lycos.com
    shaw.ca rogers.com sympatico.ca bell.net telus.net videotron.ca cogeco.ca eastlink.ca sasktel.net mts.net
    uol.com.br bol.com.br terra.com.br ig.com.br globo.com globomail.com r7.com zipmail.com.br oi.com.br
    prodigy.net.mx fibertel.com.ar ciudad.com.ar arnet.com.ar speedy.com.ar terra.cl terra.com vtr.net
    montevideo.com.uy adinet.com.uy

    qq.com vip.qq.com foxmail.com 163.com 126.com yeah.net 188.com vip.163.com vip.126.com 139.com 189.cn wo.cn sina.com
    sina.cn vip.sina.com sohu.com tom.com 21cn.com aliyun.com yahoo.com.cn yahoo.cn
    naver.com daum.net hanmail.net nate.com kakao.com yahoo.co.jp docomo.ne.jp ezweb.ne.jp au.com softbank.ne.jp
    i.softbank.jp nifty.com biglobe.ne.jp ocn.ne.jp so-net.ne.jp excite.co.jp goo.jp
    hinet.net seed.net.tw pchome.com.tw yam.com netvigator.com singnet.com.sg sanook.com
    rediffmail.com indiatimes.com sify.com in.com bsnl.in walla.co.il walla.com 012.net.il netvision.net.il bezeqint.net
    bigpond.com bigpond.net.au optusnet.com.au tpg.com.au iinet.net.au iprimus.com.au westnet.com.au ozemail.com.au
    telstra.com internode.on.net xtra.co.nz slingshot.co.nz webmail.co.za mweb.co.za telkomsa.net vodamail.co.za ananzi.co.za
  `),
)

/** Whether a domain has so many users that a burst of them says nothing. */
export const isMailProvider = (domain: string): boolean => spellings.has(domain) || others.has(domain)

/** The mailbox that an address ends in; null: not known to have other spellings. */
export function mailboxOf(key: string): string | null {
  const at = key.indexOf('@')
  let local = key.slice(0, at)
  let domain = key.slice(at + 1)
  // Fastmail: what@ada.fastmail.com is ada+what@fastmail.com.
  const [, user, above] = /^([^.]+)\.(fastmail\.(?:com|fm))$/.exec(domain) ?? []
  if (user !== undefined) [local, domain] = [user, above!]
  const spelling = spellings.get(domain)
  if (spelling === undefined) return null
  const { ignored, tag } = spelling
  const end = tag === undefined ? -1 : local.indexOf(tag)
  // What begins with the sign has no name before it. The name before a dash is no address without it.
  if (end > 0) local = local.slice(0, tag === '-' ? end + 1 : end)
  if (ignored !== undefined) local = local.replace(ignored, '') || local
  return `${local}@${spelling.domain ?? domain}`
}
