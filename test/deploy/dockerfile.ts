/** One instruction of a Dockerfile (https://docs.docker.com/reference/dockerfile/). */
export interface Instruction {
  /** In capitals. */
  readonly word: string
  /** `--name=value` in front of the rest. */
  readonly flags: Readonly<Record<string, string>>
  readonly rest: string
}

/** The instructions from one `FROM` to the next. */
export interface Stage {
  readonly name: string
  readonly base: string
  readonly instructions: readonly Instruction[]
}

export function stagesOf(dockerfile: string): readonly Stage[] {
  const stages: { name: string; base: string; instructions: Instruction[] }[] = []
  const lines = dockerfile.replaceAll(/^\s*#.*\n/gm, '').replaceAll(/\\\n/g, ' ')
  for (const line of lines.split('\n').filter(line => line.trim() !== '')) {
    const [, word = '', flags = '', rest = ''] = /^\s*(\w+)\s+((?:--\S+\s+)*)(.*?)\s*$/.exec(line) ?? []
    if (word.toUpperCase() === 'FROM') {
      const [, base = '', name = `${stages.length}`] = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(rest) ?? []
      stages.push({ name, base, instructions: [] })
      continue
    }
    const given = flags.matchAll(/--([\w-]+)=(\S+)/g)
    const instruction = {
      word: word.toUpperCase(),
      flags: Object.fromEntries([...given].map(([, k, v]) => [k, v])),
      rest,
    }
    const stage = stages.at(-1)
    if (stage === undefined) throw new Error(`before the first FROM: ${line}`)
    stage.instructions.push(instruction)
  }
  return stages
}

/** The exec form. */
export function execForm(rest: string): readonly string[] {
  const parts: unknown = rest.startsWith('[') ? JSON.parse(rest) : undefined
  if (!Array.isArray(parts)) throw new Error(`not in exec form: ${rest}`)
  return parts as string[]
}

/** The pairs of `ENV` and `LABEL`. */
export const pairsIn = (rest: string): Record<string, string> =>
  Object.fromEntries(
    [...rest.matchAll(/([\w.-]+)=(?:"([^"]*)"|(\S*))/g)].map(([, k, quoted, bare]) => [k, quoted ?? bare]),
  )

/** Whether `.dockerignore` keeps a path of the checkout out of the build: of the lines that fit, the last one decides. */
export function ignoring(dockerignore: string): (path: string) => boolean {
  const lines = dockerignore.split('\n').filter(line => line.trim() !== '' && !line.startsWith('#'))
  const rules = lines.map(line => ({ keeps: line.startsWith('!'), pattern: line.replace(/^!/, '').split('/') }))
  // `*` stands for a part of a path, and a pattern for what is below it, too.
  const fits = (pattern: readonly string[], parts: readonly string[]) =>
    pattern.length <= parts.length && pattern.every((part, i) => part === '*' || part === parts[i])
  return path => !(rules.findLast(({ pattern }) => fits(pattern, path.split('/')))?.keeps ?? true)
}
