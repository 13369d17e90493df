// What the tests of the console share: users, statements, and a look at a page in each theme and width.
import {mkdirSync, readFileSync} from 'node:fs';
import {execFileSync} from 'node:child_process';
import {createRequire} from 'node:module';
import {equal, site, until} from './harness.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8');
export const alone = process.env.ALONE;
export const shots = process.env.SHOTS;
if (shots) {
  mkdirSync(shots, {recursive: true});
}

export const as = (user, more = {}) => ({listen: false, context: {httpCredentials: {username: user, password: 'secret', send: 'always'}, ...more}});
export const numbers = text => Number(text.replace(/[^\d.-]/g, ''));
/** Statements that answer one row of JSON. */
export const sql = text => JSON.parse(execFileSync('psql', ['-qAtX', '-d', process.env.CONNINFO, '-c', `SELECT row_to_json(one) FROM (${text}) one`], {encoding: 'utf8'}));
export const psql = text => execFileSync('psql', ['-qAtX', '-v', 'ON_ERROR_STOP=1', '-d', process.env.CONNINFO, '-c', text], {encoding: 'utf8'}).trim();
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const open = async (tab, hash = '', from = site) => {
  await tab.page.goto(`${from}/console/${hash}`);
  await tab.page.locator('main h1').first().waitFor();
};
export const tile = (page, name) => page.locator('.tile', {has: page.locator('dt', {hasText: new RegExp(`^${name}$`)})}).locator('.value').innerText();

/** Nothing that axe takes for serious. */
export const accessible = async (page, what) => {
  // The policy of the page does not hold for the isolated world that Playwright evaluates in.
  const {violations} = await page.evaluate(`(() => { const module = undefined; const exports = undefined; ${axe}; return axe.run(document, {resultTypes: ['violations']}); })()`);
  equal(violations.filter(({impact}) => impact === 'serious' || impact === 'critical').map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`), [], `axe, ${what}`);
};

const views = [['light', 1280, 'light'], ['dark', 1280, 'dark'], ['narrow', 360, 'light']];

/** Looks at a page in each theme and width: it fits, and axe has nothing to say. */
export const looked = async ({page}, name) => {
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
