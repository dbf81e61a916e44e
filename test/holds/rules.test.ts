import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { hasLink } from '../../src/holds/rules.ts'

const names = `
Ada Lovelace|J.R. Smith|J.R.R. Tolkien|Dr.Who|Dr. Who|Dr.Müller|Prof.Dr. Anna Schmidt|Anna-Lena O'Neil|Jean.Pierre|jean.pierre
St. John|St.John|Sr.Carlos|Mr.Ng|Dr.Co|Mary.Ma|Aung.Win|Jose.Me|Dipl.Ing/MBA|Maria (she/her)|he/him|AC/DC|a.k.a. Bob
Node.js|Vue.js|S.p.A. Rossi|Acme Co.Ltd|Acme Co., Ltd.|Inc.|Smith & Sons Pty.Ltd|U.S.A.|Ph.D|M.D.|b.a.|Jr.
José María Aznar|François d'Orléans|Øystein Ålesund|Nguyễn Văn A|Владимир Иванов|А.С. Пушкин|А.С.Пушкин|王小明|山田 太郎|김철수
محمد علي|דוד בן גוריון|राम कुमार|สมชาย ใจดี|Γιώργος Παπαδόπουλος|გიორგი|Հայկ|እ.ኤ.አ|Ⅳ. Heinrich|Bob 2.0|v1.2.3|Agent 007
@ada|ada @ work|Ada@Work|Comma, Ada|Ada "The Count" Lovelace|Ada 😀|:-)|Ada :/|www|Wwwilliam|http|https|Com|Netta Orgill
Martin.Luther.King|Dom.Perignon|M.Night.Shyamalan|will.i.am|Mc.Donald|O.K.|P.S.|Van.der.Berg|e.e. cummings|Ioana.Ionescu
Anna.Organ|Max.Comé|Tom.Net-Smith|Max.Comte|Igor.Russo|Tom.Topping|Ann.Linklater|Leo.Storey|Kim.Clicks|1.5/2|3/4|24/7|x/y|I/O|Ms.Sitek`
  .trim()
  .split(/[|\n]/)

const links = `
http://example.com|HTTPS://EXAMPLE.COM/x|Win $1000 https://x.example/a?b|ftp://a|hi www.example.de|WWW.Example.XX|you won: bit.ly/3xyz
BIT.LY/3XYZ|t.me/casino|tinyurl.com/abc|get rich at casino-win.top|crypto.xyz|free-iphone.click now|visit evil.com|evil.com.|evil.com!
(evil.com)|sub.evil.co.uk/path|пример.рф/x|例子.中国/a|evil.xn--p1ai/x|write to eve@evil.example|eve@evil.com|Contact: eve.smith+x@mail.example.org
earn.ru|shop.cheap.store|EVIL.COM|Evil.Net|localhost.evil.com:8080/x|evil.de:8080/x|Ada evil.com Lovelace|telegram: t.me/x|a://b`
  .trim()
  .split(/[|\n]/)
  .concat(
    '=?utf-8?q?Claim=3A=20https=3A=2F=2Fevil=2Ecom?=',
    'Ada =?UTF-8*en?B?aHR0cHM6Ly9ldmlsLmNvbQ==?=',
    ...[...'․。︒﹒．｡'].map(dot => `evil${dot}com`),
    'ｅｖｉｌ．ｃｏｍ',
    '𝗲𝘃𝗶𝗹.𝗰𝗼𝗺',
    'https：／／x',
    'eve＠evil.com',
    'e\u200Bvil.c\u00ADom',
  )

describe('an address or a link in a name', () => {
  const email = 'victim@gmail.com'

  test('is not seen in the names of people and things', () => {
    assert.ok(names.length > 90)
    for (const name of names) assert.equal(hasLink({ name, email }), false, name)
  })

  test('is seen wherever it stands', () => {
    assert.ok(links.length > 30)
    for (const name of links) assert.equal(hasLink({ name, email }), true, name)
    const inside = fc.tuple(fc.constantFrom(...names), fc.constantFrom(...links), fc.constantFrom(...names))
    fc.assert(fc.property(inside, parts => hasLink({ name: parts.join(' '), email })))
  })

  test('may be one’s own: the address itself, and its domain', () => {
    const own = (name: string, email: string) => hasLink({ name, email })
    assert.equal(own('Anna@Booking.com', 'anna@booking.com'), false)
    assert.equal(own('Booking.com', 'anna@booking.com'), false)
    assert.equal(own('Anna from Booking.com', 'anna@booking.com'), false)
    assert.equal(own('Booking.com', 'anna@gmail.com'), true)
    assert.equal(own('eve@booking.com', 'anna@booking.com'), true)
    assert.equal(own('x.booking.com', 'anna@booking.com'), true)
    assert.equal(own('booking.com/eve', 'anna@booking.com'), true)
    assert.equal(own('booking.com evil.com', 'anna@booking.com'), true)
  })
})
