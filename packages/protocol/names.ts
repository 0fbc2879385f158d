// The names under which users join a room. Gateway and journal both read names through this file.

/** Characters (code points) of a name in normal form. */
export const NAME_CHARACTERS_MAX = 64

/** Longest text that is looked at: normalising a longer one would cost more than any name is worth. */
const UNITS_MAX = 4 * NAME_CHARACTERS_MAX

/**
 * Characters nobody sees, or that move others about: two names that differ in them look the same. A lone surrogate is no
 * character at all. U+2800 is a braille pattern without a dot.
 */
const invisible = /[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800]/u

/**
 * The two joiners between characters of scripts that need them, and the selector of emoji. Elsewhere they would be
 * invisible.
 */
const shaping =
  /(?<=.)(?<![\p{ASCII}\p{Script=Latin}]|\s|\u200C|\u200D)(?:\u200C|\u200D)(?!\s|$)|(?<=\p{Extended_Pictographic})\uFE0F|\uFE0F(?=\u20E3)/gu

/** White space and separators other than the space: they look like one. */
const otherSpace = /(?! )[\p{White_Space}\p{Z}]/u

/**
 * A name in normal form (NFC), in which equal names have equal characters. Letters of different scripts that look alike
 * stay different.
 *
 * @returns `problem`: a clause for a person to read
 */
export function readMemberName(
  text: string,
): { name: string; problem?: undefined } | { problem: string; name?: undefined } {
  if (text.length > UNITS_MAX) return tooLong
  const name = text.normalize('NFC')
  const characters = [...name].length
  if (characters === 0) return { problem: 'the name is empty' }
  if (characters > NAME_CHARACTERS_MAX) return tooLong
  if (name.startsWith(' ') || name.endsWith(' ')) return { problem: 'the name starts or ends with a space' }
  if (name.includes('  ')) return { problem: 'the name has two spaces in a row' }
  if (otherSpace.test(name)) return { problem: 'the name has white space that is no plain space' }
  if (invisible.test(name.replace(shaping, ''))) return { problem: 'the name has a control or invisible character' }
  return { name }
}

const tooLong = Object.freeze({ problem: `the name is longer than ${NAME_CHARACTERS_MAX} characters` })
