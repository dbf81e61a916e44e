import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { mailboxOf } from '../../src/store/mailbox.ts'

describe('the mailbox behind an address', () => {
  for (const [mailbox, ...addresses] of [
    ['adalovelace@gmail.com', 'ada.lovelace@gmail.com', 'a.d.a.lovelace+x+y@googlemail.com', 'adalovelace+@gmail.com'],
    ['ada.lovelace@outlook.com', 'ada.lovelace@outlook.com', 'ada.lovelace+news@outlook.com'],
    // Apple documents the domains; that a plus makes no difference is known from its users alone.
    ['ada@icloud.com', 'ada@me.com', 'ada@mac.com', 'ada+1@icloud.com'],
    ['adalovelace@proton.me', 'ada_lovelace@proton.me', 'ada-love.lace+1@pm.me', 'adalovelace@protonmail.com'],
    ['ada@fastmail.com', 'ada+news@fastmail.com', 'news@ada.fastmail.com'],
    ['ada@fastmail.fm', 'anything@ada.fastmail.fm'],
    ['shop-@yahoo.com', 'shop-one@yahoo.com', 'shop-two@yahoo.com', 'shop-two-three@yahoo.com'],
    ['ada@yandex.ru', 'ada@ya.ru', 'ada@yandex.com', 'ada@yandex.ru'],
  ] as const) {
    test(`${mailbox} has ${addresses.join(', ')}`, () => {
      for (const address of addresses) assert.equal(mailboxOf(address), mailbox, address)
    })
  }

  test('what nobody says to be one is not taken for one', () => {
    for (const [one, another] of [
      ['ada.lovelace@outlook.com', 'adalovelace@outlook.com'],
      ['ada@outlook.com', 'ada@hotmail.com'],
      ['ada.lovelace@icloud.com', 'adalovelace@icloud.com'],
      ['shop@yahoo.com', 'shop-one@yahoo.com'],
      ['ada@yahoo.com', 'ada@yahoo.fr'],
      ['ada+1@yandex.ru', 'ada@yandex.ru'],
      ['ada@fastmail.com', 'ada@fastmail.fm'],
    ] as const) {
      assert.notEqual(mailboxOf(one), mailboxOf(another), `${one} ${another}`)
    }
    for (const address of ['a.b+c@example.com', 'a+b@gmail.com.example.com', 'a+b@qq.com', 'a@x.gmail.com']) {
      assert.equal(mailboxOf(address), null, address)
    }
  })

  test('nothing but signs is left as it is: there is always a name', () => {
    assert.equal(mailboxOf('+a@gmail.com'), '+a@gmail.com')
    assert.equal(mailboxOf('-@proton.me'), '-@proton.me')
    assert.equal(mailboxOf('-a@yahoo.com'), '-a@yahoo.com')
  })

  test('it is its own mailbox, and dots and tags of Gmail never matter', () => {
    const name = fc.stringMatching(/^[a-z0-9]{2,20}$/)
    const tag = fc.stringMatching(/^[a-z0-9.+]{0,10}$/)
    fc.assert(
      fc.property(name, tag, fc.integer({ min: 1 }), (name, tag, at) => {
        const mailbox = `${name}@gmail.com`
        const cut = 1 + (at % (name.length - 1))
        assert.equal(mailboxOf(mailbox), mailbox)
        assert.equal(mailboxOf(`${name.slice(0, cut)}.${name.slice(cut)}+${tag}@googlemail.com`), mailbox)
      }),
    )
  })
})
