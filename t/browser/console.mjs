import {mkdirSync, readFileSync} from 'node:fs';
import {execFileSync, spawn} from 'node:child_process';
import {createRequire} from 'node:module';
import {equal, ok, run, site, test, until} from './harness.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8');
const alone = process.env.ALONE;
const shots = process.env.SHOTS;
if (shots) {
  mkdirSync(shots, {recursive: true});
}

const as = (user, more = {}) => ({listen: false, context: {httpCredentials: {username: user, password: 'secret', send: 'always'}, ...more}});
const numbers = text => Number(text.replace(/[^\d.-]/g, ''));
/** Statements that answer one row of JSON. */
const sql = text => JSON.parse(execFileSync('psql', ['-qAtX', '-d', process.env.CONNINFO, '-c', `SELECT row_to_json(one) FROM (${text}) one`], {encoding: 'utf8'}));
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const open = async (tab, hash = '', from = site) => {
  await tab.page.goto(`${from}/console/${hash}`);
  await tab.page.locator('main h1').first().waitFor();
};
const tile = (page, name) => page.locator('.tile', {has: page.locator('dt', {hasText: new RegExp(`^${name}$`)})}).locator('.value').innerText();

/** Nothing that axe takes for serious. */
const accessible = async (page, what) => {
  // The policy of the page does not hold for the isolated world that Playwright evaluates in.
  const {violations} = await page.evaluate(`(() => { const module = undefined; const exports = undefined; ${axe}; return axe.run(document, {resultTypes: ['violations']}); })()`);
  equal(violations.filter(({impact}) => impact === 'serious' || impact === 'critical').map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`), [], `axe, ${what}`);
};

const views = [['light', 1280, 'light'], ['dark', 1280, 'dark'], ['narrow', 360, 'light']];

/** Looks at a page in each theme and width: it fits, and axe has nothing to say. */
const looked = async ({page}, name) => {
  for (const [view, width, colorScheme] of views) {
    await page.emulateMedia({colorScheme});
    await page.setViewportSize({width, height: 900});
    await until('no sideways scrolling', async () => await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await accessible(page, `${name}, ${view}`);
    if (shots) {
      await page.screenshot({path: `${shots}/${name}-${view}.png`, fullPage: true});
    }
  }
};

test('Today, with PostgreSQL', async tab => {
  await open(tab);
  await tab.page.getByText('Revenue').first().waitFor();
  await tab.page.locator('.pace').first().waitFor();
  await tab.page.locator('.stream.on').waitFor();
  await looked(tab, 'today');
}, as('manager'));

test('Today, without an API', async tab => {
  await open(tab, '', alone);
  await tab.page.locator('.tile').first().waitFor();
  await tab.page.locator('.pace').first().waitFor();
  equal(await tab.page.locator('.top nav a').allInnerTexts(), ['Today', 'Why', 'Placements', 'Health'], 'pages');
  await looked(tab, 'today-alone');
}, {...as('manager'), console: [/^error: Failed to load resource: .* 404/]});

test('Health', async tab => {
  await open(tab, '#/health');
  await tab.page.getByText('Generation', {exact: true}).waitFor();
  await looked(tab, 'health');
}, as('viewer'));

void [spawn, sql, zone, tile, numbers];
await run({site: true});
