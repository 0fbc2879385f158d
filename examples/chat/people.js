// The room's members: their names, or their number if the room does not name them.
import { byId, element, setText } from '/element.js'
import { avatar } from './avatar.js'

/** @param {import('/keycast.js').RoomHandle} room */
export function createPeople(room) {
  const [list, count] = ['people', 'people-count'].map(byId)
  list.replaceChildren()
  setText(count, '')

  const draw = () => {
    const { count: number, members = [] } = room.members.state
    setText(count, number === undefined ? '' : String(number))
    const me = room.state.joinedAs
    const names = [...members].sort((a, b) => a.name.localeCompare(b.name))
    list.replaceChildren(
      ...names.map(({ name, tabs }) => {
        const notes = [name === me ? 'you' : '', tabs > 1 ? `${tabs} tabs` : ''].filter(Boolean).join(', ')
        return element(
          'li',
          {},
          avatar(name),
          element('span', { className: 'name' }, name),
          element('small', {}, notes),
        )
      }),
    )
  }
  const offMembers = room.members.on('change', draw)
  const offRoom = room.on('change', draw)
  return {
    close() {
      offMembers()
      offRoom()
    },
  }
}
