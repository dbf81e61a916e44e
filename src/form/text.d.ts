/** What `script.ts` puts in its place. */
declare module '*.css' {
  const text: string
  export default text
}
