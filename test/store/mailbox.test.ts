import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mailboxOf } from '../../src/store/mailbox.ts'

test('the spellings of one mailbox have one name', () => {
  for (const [mailbox, ...addresses] of [
    ['adalovelace@gmail.com', 'ada.lovelace@gmail.com', 'a.d.a.lovelace+x+y@googlemail.com', 'adalovelace+@gmail.com'],
    ['ada.lovelace@outlook.com', 'ada.lovelace@outlook.com', 'ada.lovelace+news@outlook.com'],
    ['ada@icloud.com', 'ada@me.com', 'ada@mac.com', 'ada+1@icloud.com'],
    ['ada@proton.me', 'ada+1@pm.me', 'ada@protonmail.com'],
    // Nothing but a tag is left as it is: there is always a name.
    ['+a@gmail.com', '+a@gmail.com'],
  ] as const) {
    for (const address of addresses) assert.equal(mailboxOf(address), mailbox, address)
  }
})

test('what nobody says to be one mailbox is not taken for one', () => {
  for (const [one, another] of [
    ['ada.lovelace@outlook.com', 'adalovelace@outlook.com'],
    ['ada@outlook.com', 'ada@hotmail.com'],
    ['ada.lovelace@icloud.com', 'adalovelace@icloud.com'],
  ] as const) {
    assert.notEqual(mailboxOf(one), mailboxOf(another), `${one} ${another}`)
  }
  for (const address of ['a.b+c@example.com', 'a+b@gmail.com.example.com', 'a+b@qq.com', 'a@x.gmail.com']) {
    assert.equal(mailboxOf(address), null, address)
  }
})
