// The pages Creatives, Experiments, Reports, Try and Changes.
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {deflateSync} from 'node:zlib';
import {as, looked, numbers, open, psql, sql} from './console-harness.mjs';
import {equal, ok, run, site, test, until} from './harness.mjs';

const form = page => page.locator('edit-form form');
const rows = page => page.locator('main tbody tr').evaluateAll(list => list.map(row => [...row.children].map(cell => cell.innerText.split('\n')[0])));

// ---- reports ----

test('a report is its address', async tab => {
  const {page} = tab;
  await open(tab, '#/reports?by=placement&from=2020-01-01');
  await page.getByRole('rowheader', {name: 'Home, top'}).waitFor();
  const expected = sql(`SELECT impressions, clicks FROM ads.report('placement', '2020-01-01', now() + interval '1 day') WHERE key = 'top'`);
  const shown = (await rows(page)).find(([name]) => name === 'Home, top');
  equal([numbers(shown[1]), numbers(shown[3])], [expected.impressions, expected.clicks], 'as PostgreSQL has it');

  await page.locator('select[name=by]').selectOption('day');
  await page.waitForURL(/by=day/);
  await page.locator('figure').waitFor();
  await page.getByLabel('Compare with').selectOption('1');
  await page.waitForURL(/previous=1/);
  await page.locator('tbody .cell-note').first().waitFor();
  await page.getByLabel('Conversions', {exact: true}).check();
  await page.waitForURL(/metrics=/);
  const [heads, address] = [await page.locator('thead th').allInnerTexts(), page.url()];
  ok(heads.includes('Conversions'), `metrics: ${heads}`);
  await page.goto('about:blank');
  await page.goto(address);
  await page.locator('tbody .cell-note').first().waitFor();
  equal(await page.locator('thead th').allInnerTexts(), heads, 'the address brings it back');
  await looked(tab, 'reports');

  await page.setViewportSize({width: 1280, height: 900});
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: 'Save as CSV'}).click()]);
  const csv = readFileSync(await download.path(), 'utf8').trimEnd().split('\r\n');
  equal(csv.length - 1, await page.locator('section > data-table tbody tr').count(), 'a line for each row');
  ok(csv[0].startsWith('day,day name,impressions'), `a head: ${csv[0]}`);
}, as('viewer'));

test('the line of a report does the same', async tab => {
  const {page} = tab;
  await open(tab, '#/reports?by=campaign');
  await page.getByRole('rowheader', {name: 'Autumn'}).waitFor();
  const [name, ...line] = (await page.locator('.command pre').innerText()).split(' ');
  equal([name, ...line], ['nginx-ads', 'report', '--by', 'campaign'], 'the line');
  const csv = execFileSync(process.env.COMMAND, [...line, '--db', process.env.CONNINFO, '--json'], {encoding: 'utf8'});
  const impressions = JSON.parse(csv).rows.find(({name: one}) => one === 'Winter').impressions;
  equal(numbers((await rows(page)).find(([one]) => one === 'Winter')[1]), impressions, 'the same figure');
}, as('viewer'));

test('a report that is refused says why', async tab => {
  await open(tab, '#/reports?by=nothing');
  await tab.page.getByRole('alert').getByText('by must be').waitFor();
}, {...as('viewer'), console: [/^error: Failed to load resource: .* 422/]});

// ---- try ----

test('a request is tried', async tab => {
  const {page} = tab;
  await open(tab, '#/try');
  await page.getByLabel('Placements').fill('top');
  await page.getByRole('button', {name: 'Decide'}).click();
  const served = page.locator('data-table').first();
  await served.getByText('111', {exact: true}).waitFor();
  const refused = page.locator('data-table').nth(1);
  await until('why another is not served', async () => /31\s+Blocked\s+geo/.test(await refused.innerText()));
  const total = (await served.locator('tbody tr').evaluateAll(list => list.map(row => Number(row.children[3].innerText.replace(/\D/g, ''))))).reduce((sum, n) => sum + n, 0);
  equal(total, 1000, 'all draws');
  ok(page.url().includes('placements=top'), `the address has it: ${page.url()}`);
  await looked(tab, 'try');

  await page.getByLabel('Geo').fill('NO');
  await page.getByRole('button', {name: 'Decide'}).click();
  await until('its country is right', async () => !/Blocked\s+geo/.test(await refused.innerText()));
  ok(/--placement top .*--geo NO/.test(await page.locator('.command pre').innerText()), 'as a command');
  await page.getByLabel('Placements').fill('none');
  await page.getByRole('button', {name: 'Decide'}).click();
  await page.getByRole('alert').getByText('none').waitFor();
}, {...as('viewer'), console: [/^error: Failed to load resource: .* 422/]});

// ---- experiments ----

const trials = (creative, all, won, from = 0) => psql(`INSERT INTO ads.experiment_trials SELECT 1, 's-${creative}-' || i, ${creative}, now() - interval '2 days', CASE WHEN i <= ${from + won} THEN now() END
  FROM generate_series(${from + 1}, ${from + all}) i`);

test('an experiment names no winner before there is one', async tab => {
  const {page} = tab;
  await open(tab, '#/experiments');
  await page.getByRole('link', {name: 'Which of them'}).click();
  await page.getByText('Too few trials').waitFor();
  await page.getByRole('button', {name: 'Start'}).click();
  await form(page).getByRole('button', {name: 'Start'}).click();
  await page.locator('.head .chip.running').waitFor();

  trials(111, 2000, 100);
  trials(112, 2000, 130);
  await page.reload();
  await page.getByText('Undecided').waitFor();
  const verdict = await page.locator('main').innerText();
  ok(!/, the winner|wins/.test(verdict), `no winner: ${verdict}`);
  ok(/Days to a verdict\s+[\d,]+ days?, if the difference is \+0\.10 points/.test(verdict), `how long: ${verdict}`);
  equal(await page.locator('svg.interval').count(), 1, 'an interval');
  ok(/from .+ to .+ points/.test(await page.locator('svg.interval').getAttribute('aria-label')), 'in words');
  await looked(tab, 'experiment');

  trials(112, 4000, 400, 2000);
  await page.reload();
  await page.getByText('The split is wrong', {exact: true}).waitFor();
  equal(await page.locator('svg.interval').count(), 0, 'with a wrong split nothing is compared');

  trials(111, 4000, 200, 2000);
  psql("UPDATE ads.experiment_trials SET first_success = now() WHERE experiment_id = 1 AND creative_id = 112 AND substr(session_id, 7)::int % 2 = 0");
  await page.reload();
  await page.getByText('Decided', {exact: true}).waitFor();
  await page.getByText('112, the winner').waitFor();
  await page.setViewportSize({width: 1280, height: 900});
  await page.getByRole('button', {name: 'Stop…'}).click();
  equal(await form(page).getByLabel('Winner').inputValue(), '112', 'it is offered');
  await form(page).getByRole('button', {name: 'Stop'}).click();
  await page.locator('.head .chip.completed').waitFor();
  equal(sql('SELECT winner FROM ads.experiments WHERE id = 1').winner, 112, 'and kept');
}, as('manager'));

// ---- creatives ----

const png = (width, height) => {
  const table = Array.from({length: 256}, (_, n) => { let c = n; for (let k = 0; k < 8; k++) { c = c & 1 ? 0xedb88320 ^ c >>> 1 : c >>> 1; } return c >>> 0; });
  const crc = bytes => (bytes.reduce((c, byte) => table[(c ^ byte) & 255] ^ c >>> 8, 0xffffffff) ^ 0xffffffff) >>> 0;
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', head), chunk('IDAT', deflateSync(Buffer.alloc((width + 1) * height))), chunk('IEND', Buffer.alloc(0))]);
};

test('a creative is shown in a sandbox, and changed', async tab => {
  const {page} = tab;
  await open(tab, '#/creative/211');
  const frame = page.frameLocator('iframe.preview-frame');
  await frame.getByText('a', {exact: true}).waitFor();
  equal(await page.locator('iframe.preview-frame').getAttribute('sandbox'), '', 'nothing is allowed');
  await page.getByText(/likely .+ to .+, of [\d,]+ clicks/).waitFor();
  await looked(tab, 'creative');

  await page.setViewportSize({width: 1280, height: 900});
  await page.getByRole('button', {name: 'Edit', exact: true}).click();
  await form(page).getByLabel('Markup').fill('<b onclick="steal()">better</b><script>steal()</script>');
  await form(page).getByText(/Removed from the markup: .*onclick/).waitFor();
  await looked(tab, 'creative-form');
  await page.setViewportSize({width: 1280, height: 900});
  await form(page).getByRole('button', {name: 'Save'}).click();
  await frame.getByText('better').waitFor();
  const {content} = sql('SELECT content FROM ads.creatives WHERE id = 211');
  ok(/better/.test(content.markup) && !/steal/.test(content.markup), `clean: ${content.markup}`);
}, as('manager'));

test('an image is uploaded for a new creative', async tab => {
  const {page} = tab;
  await open(tab, '#/creative/new?group=21&type=image');
  await page.getByLabel('Upload an image').setInputFiles({name: 'a.png', mimeType: 'image/png', buffer: Buffer.from('<svg onload="x()">')});
  await page.getByRole('alert').getByText('refused').waitFor();
  await page.getByLabel('Upload an image').setInputFiles({name: 'a.png', mimeType: 'image/png', buffer: png(728, 90)});
  await page.getByText('728×90').waitFor();
  const address = await form(page).getByLabel('Image', {exact: true}).inputValue();
  ok(/^\/img\/[0-9a-f]{32}\.png$/.test(address), `its address: ${address}`);
  equal((await (await fetch(site + address)).arrayBuffer()).byteLength, png(728, 90).length, 'nginx serves it');
  await form(page).getByLabel('Alternative text').fill('A white field');
  await form(page).getByLabel('Click URL').fill('javascript:alert(1)');
  await form(page).locator('.fault').first().waitFor();
  equal(await form(page).getByLabel('Click URL').getAttribute('aria-invalid'), 'true', 'the message is at its field');
  await form(page).getByLabel('Click URL').fill('https://a.example/');
  await form(page).getByLabel('Name').fill('From a file');
  await form(page).locator('.preview').getByText('added').waitFor();
  await form(page).getByRole('button', {name: 'Create'}).click();
  await page.getByRole('heading', {name: 'From a file'}).waitFor();
  await until('the image', () => page.frameLocator('iframe.preview-frame').locator('img').evaluate(image => image.naturalWidth === 728).catch(() => false));
}, {...as('manager'), console: [/^error: Failed to load resource: .* 422/]});

test('an advertiser sees its own creatives and reports', async tab => {
  const {page} = tab;
  await open(tab, '#/creative');
  await page.locator('tbody tr').first().waitFor();
  ok((await rows(page)).length > 0, 'some');
  equal((await page.locator('tbody tr').allInnerTexts()).filter(text => /\b2\d1\d\b/.test(text)), [], 'none of others');
  await open(tab, '#/creative/111');
  await page.frameLocator('iframe.preview-frame').getByText('a', {exact: true}).waitFor();
  equal(await page.locator('.head .actions button').count(), 0, 'and changes nothing');
  await open(tab, '#/reports');
  await page.getByRole('rowheader', {name: 'Autumn'}).waitFor();
  equal((await rows(page)).filter(([name]) => name === 'Winter'), [], 'of others it has no figures');
}, as('carol'));

// ---- changes ----

test('an edit is undone', async tab => {
  const {page} = tab;
  execFileSync(process.env.COMMAND, ['campaign', 'update', '4', '--name', 'Renamed', '--as', 'zoe', '--db', process.env.CONNINFO]);
  await open(tab, '#/changes');
  const first = page.locator('.history > li').first();
  await first.getByText('zoe').waitFor();
  await first.getByText('Renamed').first().waitFor();
  await looked(tab, 'changes');
  await page.setViewportSize({width: 1280, height: 900});
  await page.getByLabel('By').selectOption('zoe');
  await page.waitForURL(/actor=zoe/);
  await until('only hers', async () => await page.locator('.history > li').count() === 1);
  await first.getByRole('button', {name: 'Undo'}).click();
  await form(page).locator('.preview').getByText('Renamed').waitFor();
  ok(/campaign revert 4 --before \d+/.test(await form(page).locator('.command pre').innerText()), 'as a command');
  await form(page).getByRole('button', {name: 'Undo'}).click();
  await form(page).waitFor({state: 'detached'});
  equal(sql('SELECT name FROM ads.campaigns WHERE id = 4').name, 'Draft', 'it has its name again');
}, as('manager'));

test('a viewer has no page of changes', async tab => {
  await open(tab, '#/changes');
  await tab.page.getByText('There is no such page').waitFor();
}, as('viewer'));

await run({site: true});
