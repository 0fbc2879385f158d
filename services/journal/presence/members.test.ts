import { type AnyTab, createMembers } from './members.ts'

function setup({ isNamed = true, isUnique = true }: { isNamed?: boolean; isUnique?: boolean } = {}) {
  const ghosts = new Set<unknown>()
  const members = createMembers({
    room: 'room:1',
    key: 'room:1 members',
    epoch: 'E',
    isNamed,
    isUnique,
    isGhost: tab => ghosts.has(tab),
  })
  const newTab = (): AnyTab => ({ member: undefined, name: '' })

  function join(user: string, name: string = user) {
    const tab = newTab()
    return { tab, ...members.join(tab, { user, name, claim: undefined }) }
  }

  const joinWith = (claim: string, name: string) => members.join(newTab(), { user: '', name, claim })

  /** The changes that a link at the latest position is sent. */
  function told() {
    const position = members.position
    return members.publish() ? members.after(position).map(short) : []
  }
  return { members, ghosts, newTab, join, joinWith, told, everybody: () => short(members.everybody()) }
}

function short({ type, rev, count, members, joined, left }: any) {
  const of = (list: any[] | undefined) => list?.map(({ name, tabs }) => `${name} ${tabs}`)
  return { type, rev, count, members: of(members), joined: of(joined), left: of(left) }
}

test('who comes and who goes is told in one batch, and the next counts on', () => {
  const { join, told, members, everybody } = setup()
  const { tab } = join('ann')
  join('bob')
  expect(told()).toEqual([{ type: 'presence', rev: 1, count: 2, joined: ['ann 1', 'bob 1'], left: [] }])
  members.leave(tab)
  join('cal')
  expect(told()).toEqual([{ type: 'presence', rev: 2, count: 2, joined: ['cal 1'], left: ['ann 1'] }])
  expect(told()).toEqual([])
  expect(everybody()).toEqual({ type: 'members', rev: 2, count: 2, members: ['bob 1', 'cal 1'] })
})

test('who comes and goes within a batch was never there, and who goes and comes was never away', () => {
  const { join, told, members } = setup()
  members.leave(join('ann').tab)
  expect(told()).toEqual([])
  expect(members.isEmpty).toBe(true)
  const { tab } = join('bob')
  told()
  members.leave(tab)
  join('bob')
  expect(told()).toEqual([])
})

test("all tabs of a user are one member, who leaves with the last, under the latest tab's name", () => {
  const { join, told, members } = setup()
  const first = join('ann', 'Ann')
  const second = join('ann', 'Annie')
  expect(told()).toEqual([{ type: 'presence', rev: 1, count: 1, joined: ['Annie 2'], left: [] }])
  members.leave(first.tab)
  expect(told()).toEqual([{ type: 'presence', rev: 2, count: 1, joined: ['Annie 1'], left: [] }])
  members.leave(second.tab)
  expect(told()).toEqual([{ type: 'presence', rev: 3, count: 0, joined: [], left: ['Annie 1'] }])
})

test('a tab that says again what it said does not bring an old name back, also where another has it now', () => {
  const { join, members, everybody } = setup()
  const first = join('ann', 'Ann')
  join('ann', 'Annie')
  expect(join('bob', 'Ann').refusal).toBe(undefined)
  expect(members.join(first.tab, { user: 'ann', name: 'Ann', claim: undefined })).toEqual({})
  members.publish()
  expect(everybody().members).toEqual(['Annie 2', 'Ann 1'])
})

test('a name belongs to one user until the last tab leaves or takes another name', () => {
  const { join, members } = setup()
  const { tab } = join('ann', 'Ann')
  expect(join('bob', 'Ann').refusal).toBe('name_taken')
  expect(join('ann', 'Ann').refusal).toBe(undefined)
  join('ann', 'Annie')
  expect(join('bob', 'Ann').refusal).toBe(undefined)
  expect(members.join(tab, { user: 'ann', name: 'Ann', claim: undefined })).toEqual({})
  const { join: joinAny } = setup({ isUnique: false })
  joinAny('ann', 'Ann')
  expect(joinAny('bob', 'Ann').refusal).toBe(undefined)
})

test('a refused tab stays as it was', () => {
  const { join, members, everybody } = setup()
  const { tab } = join('ann', 'Ann')
  join('bob', 'Bob')
  expect(members.join(tab, { user: 'ann', name: 'Bob', claim: undefined })).toEqual({ refusal: 'name_taken' })
  members.publish()
  expect(everybody().members).toEqual(['Ann 1', 'Bob 1'])
})

test('anonymous members are known by their claim, which nobody is told', () => {
  const { joinWith, members } = setup()
  joinWith('claim-one', 'Ann')
  expect(joinWith('claim-two', 'Ann').refusal).toBe('name_taken')
  expect(joinWith('claim-one', 'Ann').refusal).toBe(undefined)
  members.publish()
  const [member] = members.everybody().members ?? []
  expect(member).toEqual({ id: expect.stringMatching(/^[\w-]{12}$/), name: 'Ann', tabs: 2 })
  expect(JSON.stringify(members.everybody())).not.toContain('claim')
})

test("an anonymous member's claim is not a user's name", () => {
  const { join, joinWith } = setup()
  join('ann', 'Ann')
  expect(joinWith('ann', 'Ann').refusal).toBe('name_taken')
})

test("a member's next tab takes the place of one whose connection broke", () => {
  const { join, ghosts, told } = setup()
  const { tab } = join('ann')
  told()
  ghosts.add(tab)
  expect(join('bob', 'ann').refusal).toBe('name_taken')
  expect(join('ann').replaced).toBe(tab)
  expect(told()).toEqual([])
  expect(join('ann').replaced).toBe(undefined)
})

test('a member has 100 tabs at most, and comes back with as many', () => {
  const { join, ghosts } = setup()
  const tabs = Array.from({ length: 100 }, () => join('ann').tab)
  expect(join('ann').refusal).toBe('capacity')
  ghosts.add(tabs[7])
  expect(join('ann').replaced).toBe(tabs[7])
})

test('counted members are told as a number, and only when it changes', () => {
  const { join, told, everybody, members } = setup({ isNamed: false })
  join('ann')
  join('bob')
  expect(told()).toEqual([{ type: 'presence', rev: 1, count: 2 }])
  const { tab } = join('ann')
  expect(told()).toEqual([])
  members.leave(tab)
  expect(everybody()).toEqual({ type: 'members', rev: 1, count: 2 })
})

test('above 250 members a room is counted, and listed again at 200', () => {
  const { join, told, members } = setup()
  const tabs = Array.from({ length: 250 }, (_, n) => join(`user ${n}`).tab)
  expect(told()[0].joined).toHaveLength(250)
  tabs.push(join('one more').tab)
  expect(told()).toEqual([{ type: 'members', rev: 2, count: 251 }])
  join('ann')
  expect(told()).toEqual([{ type: 'presence', rev: 3, count: 252 }])
  for (const tab of tabs.splice(0, 51)) members.leave(tab)
  expect(told()).toEqual([{ type: 'presence', rev: 4, count: 201 }])
  members.leave(tabs.pop() as any)
  const [answer] = told()
  expect(answer).toMatchObject({ type: 'members', rev: 5, count: 200 })
  expect(answer.members).toHaveLength(200)
})

test('a link that is a little behind is told the changes, one that is far behind the members', () => {
  const { join, members } = setup()
  const positions = []
  for (let n = 0; n < 30; n++) {
    positions.push(members.position)
    join(`user ${n}`)
    members.publish()
  }
  expect(members.after(members.position)).toEqual([])
  expect(members.after(positions[28]).map(short)).toMatchObject([{ rev: 29 }, { rev: 30 }])
  expect(members.after(positions[14])).toHaveLength(16)
  expect(members.after(positions[13]).map(short)).toMatchObject([{ type: 'members', rev: 30, count: 30 }])
  expect(members.after({ epoch: 'other', seq: 29 })).toMatchObject([{ type: 'members' }])
  expect(members.after({ epoch: 'E', seq: 31 })).toMatchObject([{ type: 'members' }])
  expect(members.after(undefined)).toMatchObject([{ type: 'members' }])
})

test('changes of many members are not kept for long', () => {
  const { join, members } = setup()
  const start = members.position
  for (let n = 0; n < 120; n++) join(`user ${n}`)
  members.publish()
  const second = members.position
  for (let n = 0; n < 120; n++) join(`user ${n}`)
  members.publish()
  for (let batch = 0; batch < 3; batch++) {
    for (let n = 0; n < 120; n++) join(`user ${n}`)
    members.publish()
  }
  expect(members.after(start)).toMatchObject([{ type: 'members' }])
  expect(members.after(second)).toHaveLength(4)
})
