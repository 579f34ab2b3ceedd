// Speaks to a GTP engine as Sabaki does, over Sabaki's own @sabaki/gtp: `node sabaki_session.js COMMAND...`, with NODE_PATH where that module is.
// Prints one JSON object: the times of the first answers, the command of analysis that Sabaki would take, and what it would show of it.

const {Controller, ControllerStateTracker} = require('@sabaki/gtp')

// The first that the engine lists is taken.
const ANALYZE = ['analyze', 'kata-analyze', 'lz-analyze']

// What Sabaki shows: a win rate with a point in it is a share, one without counts in hundredths of a per cent.
function shown(line) {
  return line.split(/\s*info\s+/).slice(1).map(text => {
    const words = text.trim().split(/\s+/)
    const fields = {}
    const end = words.indexOf('pv')
    for (let i = 0; i + 1 < end; i += 2) fields[words[i]] = words[i + 1]
    const percent = fields.winrate.includes('.') ? +fields.winrate * 100 : +fields.winrate / 100
    return {move: fields.move, visits: +fields.visits, percent, moves: words.slice(end + 1)}
  })
}

async function main() {
  const [program, ...words] = process.argv.slice(2)
  const controller = new Controller(program, words)
  const tracker = new ControllerStateTracker(controller)
  const began = Date.now()
  controller.start()
  const identity = await Promise.all(['name', 'version', 'protocol_version', 'list_commands'].map(name => controller.sendCommand({name})))
  const seen = {identitySeconds: (Date.now() - began) / 1000, name: identity[0].content, reports: []}
  const commands = identity[3].content.split('\n')
  seen.analysis = ANALYZE.find(name => commands.includes(name))
  for (const name of ['analyze', 'genmove_analyze']) {
    seen[name] = commands.includes(name)
  }
  await tracker.sync({komi: 0.5, boardsize: [5, 5], history: [{name: 'play', args: ['B', 'C3']}, {name: 'play', args: ['W', 'D4']}]})
  seen.syncSeconds = (Date.now() - began) / 1000

  // An analysis goes on until the next command.
  let enough
  const reported = new Promise(resolve => (enough = resolve))
  const analysis = controller.sendCommand({name: seen.analysis, args: ['B', '20']}, ({line}) => {
    if (!line.startsWith('info ')) return
    seen.reports.push(shown(line))
    if (seen.reports.length >= 3) enough()
  })
  await reported
  const abort = controller.sendCommand({name: 'protocol_version'})
  seen.analysisError = (await analysis).error
  await abort
  // `analyze` and `genmove_analyze` are carried out although they are not listed.
  const moved = await tracker.queueCommand({name: 'genmove_analyze', args: ['B', '20']})
  seen.moved = moved.content.split('\n').pop()
  seen.genmove = (await tracker.queueCommand({name: 'genmove', args: ['W']})).content
  await controller.stop(20000)
  console.log(JSON.stringify(seen))
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
