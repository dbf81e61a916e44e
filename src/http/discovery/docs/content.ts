/**
 * What the documentation says, in order and without form: the page and its Markdown twin are two ways to write down one
 * outline, so neither can lack what the other has. Texts are prose as `prose.ts` reads it.
 */
export interface Outline {
  readonly title: string
  readonly name: string
  readonly version: string
  readonly license: string
  readonly summary: string
  readonly introduction: Section
  readonly groups: readonly Group[]
}

export interface Group {
  readonly id: string
  readonly title: string
  readonly text?: string
  readonly sections: readonly Section[]
}

export interface Section {
  readonly id: string
  readonly title: string
  readonly call?: { readonly method: string; readonly path: string }
  readonly parts: readonly Part[]
}

/** Text, and the examples that stand beside it where there is room. */
export interface Part {
  readonly text: readonly Block[]
  readonly beside: readonly Block[]
}

export type Block =
  | { readonly is: 'prose'; readonly text: string }
  | { readonly is: 'rows'; readonly title: string; readonly rows: readonly Row[] }
  | { readonly is: 'refusals'; readonly title: string; readonly refusals: readonly RefusalRow[] }
  | { readonly is: 'code'; readonly title: string; readonly status?: string; readonly samples: readonly Sample[] }
  | { readonly is: 'calls'; readonly title: string; readonly calls: readonly CallLink[] }

/** A member of a body or a header field. */
export interface Row {
  readonly name: string
  readonly notes: readonly string[]
  readonly text: string
  readonly value?: { readonly label: string; readonly text: string }
}

export interface RefusalRow {
  readonly status: string
  readonly text: string
  readonly sentences: readonly string[]
}

export interface Sample {
  readonly title: string
  readonly language: 'sh' | 'js' | 'python' | 'html' | 'json' | 'http'
  readonly code: string
}

export interface CallLink {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly title: string
}

/** The anchor of a heading, made as Markdown tools make theirs, so that links hold in both forms. */
export const idOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-')
