import {spawn} from 'node:child_process';
import {accessible, alone, as, looked, numbers, open, psql, shots, sql, tile, zone} from './console-harness.mjs';
import {equal, ok, run, site, test, until} from './harness.mjs';

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
  await tab.page.getByText('Generation', {exact: true}).first().waitFor();
  await looked(tab, 'health');
}, as('viewer'));

const shown = [
  ['campaigns', '#/campaigns', 'Autumn', site], ['campaign', '#/campaign/1', 'Readers of Autumn', site], ['why', '#/why', 'Readers of Blocked', site],
  ['why-group', '#/why/31', 'Cannot', site], ['why-campaign', '#/why/campaign-1', 'Readers of Autumn', site],
  ['ad-group', '#/ad-group/11', 'Frequency caps', site], ['ad-group-form', '#/ad-group/31?edit=targeting.geos', 'Save', site],
  ['placements', '#/placement', 'Home, top', site], ['placement', '#/placement/top', 'Readers of Autumn', site],
  ['campaign-alone', '#/campaign/1', 'Autumn', alone], ['why-alone', '#/why', 'Served', alone], ['why-group-alone', '#/why/11', 'Ad group 11', alone], ['placement-alone', '#/placement/top', 'page-spot', alone], ['health-alone', '#/health', 'Generation', alone],
];
for (const [name, hash, text, from] of shown) {
  test(`the page ${name}`, async tab => {
    await open(tab, hash, from);
    await tab.page.locator('main').getByText(text, {exact: false}).first().waitFor();
    await looked(tab, name);
  }, {...as('manager'), console: [/^error: Failed to load resource: .* 404/]});
}

// ---- figures ----

const visitors = (url, seconds, ...more) => new Promise((done, failed) => {
  const child = spawn('scripts/visitors', [`${url}/spot/serve`, '--rate', '40', '--seconds', String(seconds), '--quiet', ...more], {stdio: 'inherit'});
  child.on('exit', code => code === 0 ? done() : failed(new Error(`visitors: ${code}`)));
});
const status = async from => (await fetch(`${from}/status?limit=1000`)).json();
/** What the tiles of a page show. */
const tiles = async page => Object.fromEntries(await Promise.all(['Requests', 'Impressions', 'Clicks', 'Revenue'].map(async name => [name, numbers(await tile(page, name))])));

test('Today moves while visitors come, and equals ads_status at rest', async tab => {
  const {page} = tab;
  await open(tab, '', alone);
  await page.locator('.tile').first().waitFor();
  const before = await tiles(page);
  const running = visitors(alone, 5, '--placements', 'top,side');
  await until('more requests', async () => (await tiles(page)).Requests > before.Requests);
  await page.locator('.feed li').first().waitFor();
  ok(/Autumn|Winter/.test(await page.locator('.feed').innerText()), 'events name their campaign');
  await running;
  const {traffic, ad_groups: groups} = await status(alone);
  const spent = groups.reduce((sum, {spend_cents: cents}) => sum + cents, 0);
  await until('the figures of ads_status', async () => {
    const now = await tiles(page);
    return now.Impressions === traffic.impression.net && now.Clicks === traffic.click.net && now.Revenue === Math.round(spent) / 100;
  });
  ok(traffic.impression.net > 20, 'there were impressions');
}, {...as('manager'), console: [/^error: Failed to load resource: .* 404/]});

test('Today equals the report of PostgreSQL at rest, and the node', async tab => {
  const {page} = tab;
  await open(tab);
  const running = visitors(site, 4, '--placements', 'top,side');
  await page.locator('.feed li').first().waitFor();
  await running;
  const books = () => sql(`SELECT impressions::int, clicks::int, spend_cents::float FROM ads.period('today', '', '${zone}') p, ads.report('total', p.since, p.until, zone => '${zone}')`);
  await until('all events in PostgreSQL', async () => {
    const {traffic, spool} = await status(site);
    return spool.segments === 0 || books().impressions === traffic.impression.net;
  });
  const {traffic} = await status(site);
  equal(books().impressions, traffic.impression.net, 'PostgreSQL has what the node counted');
  await until('the figures of the report', async () => {
    const [now, {impressions, clicks, spend_cents: cents}] = [await tiles(page), books()];
    return now.Impressions === impressions && now.Clicks === clicks && now.Revenue === Math.round(cents) / 100;
  });
  ok(books().impressions > 20, 'there were impressions');
  ok((await page.locator('.source').allInnerTexts()).some(text => /^PostgreSQL · (now|\d+ s old)$/.test(text)), 'the source and its age');
}, as('viewer'));

test('Health shows the nodes of a fleet, and a placement why it got no ad', async tab => {
  const {page} = tab;
  await open(tab, '#/health');
  await page.locator('tr', {hasText: 'web1'}).getByText('generation 7').waitFor();
  ok(/web2.*silent/s.test(await page.locator('tr', {hasText: 'web2'}).innerText()), 'the silent one');
  await looked(tab, 'health-fleet');
  await open(tab, '#/placement/side');
  await page.locator('tr', {hasText: 'pacing'}).getByText('300', {exact: true}).waitFor();
  await page.locator('.facts').getByText('50 % of the ad in view for 1 s').waitFor();
}, as('viewer'));

test('a chart has its finding, and a table behind it', async tab => {
  await open(tab);
  const figure = tab.page.locator('figure.chart').first();
  await figure.locator('figcaption', {hasText: 'so far today'}).waitFor();
  await figure.locator('summary').click();
  equal(await figure.locator('tbody tr').count(), 24, 'hours');
}, as('viewer'));

// ---- edits ----

const form = page => page.locator('edit-form form');
const fill = (page, label, value) => form(page).getByLabel(label, {exact: true}).fill(value);
const act = async (page, name) => {
  await page.locator('.head .actions').getByRole('button', {name, exact: true}).click();
  await form(page).getByRole('button', {name, exact: true}).click();
  await form(page).waitFor({state: 'detached'});
};
const publishes = name => psql(`UPDATE ads.fleet_nodes SET about = about || jsonb_build_object('generation', ((about ->> 'generation')::int + 1)::text) WHERE about ->> 'name' = '${name}'`);
const campaign = id => sql(`SELECT status, name, budget_micro::float / 1e6 AS cents, budget_type FROM ads.campaigns WHERE id = ${id}`);

test('a campaign is created, re-budgeted, started, paused, cloned and archived', async tab => {
  const {page} = tab;
  await open(tab, '#/campaigns');
  await page.getByRole('button', {name: 'New campaign'}).click();
  await fill(page, 'Name', 'From the page');
  await fill(page, 'Advertiser', 'acme');
  await fill(page, 'Amount', '25.00');
  // The validator's own words, at the field.
  await fill(page, 'Time zone', 'Europe/Nowhere');
  await page.locator('.field.wrong', {hasText: 'Time zone'}).getByText('Europe/Nowhere').waitFor();
  await form(page).getByRole('button', {name: 'Create'}).click();
  await until('the wrong field has the focus', () => page.evaluate(() => document.activeElement.name === 'timezone'));
  await accessible(page, 'a form with a fault');
  if (shots) {
    await page.screenshot({path: `${shots}/form-fault.png`});
  }
  await fill(page, 'Time zone', 'Europe/Berlin');
  await page.locator('.preview').waitFor();
  equal(await page.locator('.field.wrong').count(), 0, 'faults');
  ok((await page.locator('.command code').innerText()).startsWith("nginx-ads campaign create --name 'From the page' --advertiser acme"), 'the line of the command');
  await form(page).getByRole('button', {name: 'Create'}).click();
  await page.waitForURL(/#\/campaign\/\d+$/);
  const id = Number(page.url().match(/\d+$/)[0]);
  equal(campaign(id), {status: 'draft', name: 'From the page', cents: 2500, budget_type: 'daily'}, 'in PostgreSQL');

  await page.getByRole('button', {name: 'Edit budget'}).click();
  await fill(page, 'Amount, EUR', 'much');
  await form(page).getByText('must be an amount like 50.00').waitFor();
  await fill(page, 'Amount, EUR', '40');
  await page.locator('.preview').getByText('40.00').waitFor();
  await form(page).getByRole('button', {name: 'Save'}).click();
  await form(page).waitFor({state: 'detached'});
  await page.locator('.facts').getByText('40.00 EUR per day').waitFor();
  equal(campaign(id).cents, 4000, 're-budgeted');

  await page.getByRole('button', {name: 'Edit flight'}).click();
  await fill(page, 'First day', '2030-03-31');
  await fill(page, 'Last day', '2030-03-30');
  await form(page).locator('.fault, .faults').first().waitFor();
  await fill(page, 'Last day', '2030-03-31');
  await page.locator('.preview li').first().waitFor();
  await form(page).getByRole('button', {name: 'Save'}).click();
  await form(page).waitFor({state: 'detached'});
  // A day of 23 hours.
  equal(sql(`SELECT starts_at AT TIME ZONE 'UTC' AS s, ends_at AT TIME ZONE 'UTC' AS e FROM ads.campaigns WHERE id = ${id}`), {s: '2030-03-30T23:00:00', e: '2030-03-31T22:00:00'}, 'the flight');

  await page.getByRole('button', {name: 'Edit flight'}).click();
  await fill(page, 'First day', '');
  await form(page).getByRole('button', {name: 'Save'}).click();
  await form(page).waitFor({state: 'detached'});
  await act(page, 'Start');
  await page.locator('.head .chip.active').waitFor();
  // All nodes of a fleet are awaited.
  const served = page.locator('.notice-card').last();
  await served.getByText('waiting for web1, web3').waitFor();
  publishes('web1');
  await served.getByText('Served by 1 of 2 nodes; waiting for web3').waitFor();
  publishes('web3');
  await served.getByText('Served by all 2 nodes since').waitFor();
  equal(campaign(id).status, 'active', 'started');
  await act(page, 'Pause');
  await page.locator('.head .chip.paused').waitFor();
  await act(page, 'Resume');
  await page.locator('.head .chip.active').waitFor();

  await act(page, 'Clone');
  await page.waitForURL(url => !url.hash.endsWith(`/${id}`));
  const copy = Number(page.url().match(/\d+$/)[0]);
  equal(campaign(copy), {status: 'draft', name: 'From the page (copy)', cents: 4000, budget_type: 'daily'}, 'cloned');
  await page.locator('.head .chip.draft').waitFor();
  await act(page, 'Archive');
  await page.locator('.head .chip.archived').waitFor();
  equal(campaign(copy).status, 'archived', 'archived');
  await page.locator('.history').getByText('manager').first().waitFor();
  await looked(tab, 'campaign-edited');
}, {...as('manager'), console: [/^error: Failed to load resource: .* 422/]});

test('why a campaign is not served, and put right from there', async tab => {
  const {page} = tab;
  await open(tab);
  await page.locator('campaign-list tr', {hasText: 'Blocked'}).getByText('Why?').click();
  await page.locator('.problems').getByText('geos').first().waitFor();
  equal(await page.locator('.remedy code').first().innerText(), 'nginx-ads ad-group update 31 --geos none', 'a command is set off');
  ok(!/nginx-ads/.test(await page.locator('.remedy').first().evaluate(one => one.firstChild.textContent)), 'from what to do');
  psql('UPDATE ads.fleet_nodes SET closed_at = now()');  // no fleet any more
  await page.locator('.problems').getByRole('link', {name: 'Change it'}).first().click();
  await until('the field that is the cause has the focus', () => page.evaluate(() => document.activeElement?.name === 'targeting.geos'));
  equal(await form(page).getByLabel('Countries and regions').inputValue(), 'NO', 'what it has');
  await fill(page, 'Countries and regions', 'NO, Germany');
  await page.locator('.field.wrong', {hasText: 'Countries'}).waitFor();
  await fill(page, 'Countries and regions', 'NO, DE');
  await page.locator('.preview li').first().waitFor();
  equal(await page.locator('.command code').innerText(), 'nginx-ads ad-group update 31 --geos NO,DE', 'the line of the command');
  await form(page).getByRole('button', {name: 'Save'}).click();
  await form(page).waitFor({state: 'detached'});
  await page.locator('.notice-card').getByText('Served by this node since').waitFor();
  await until('it is served', async () => (await (await fetch(`${site}/spot/serve?placement=top&country=DE`)).json()).ads[0]?.campaign === 3);
}, {...as('manager'), console: [/^error: Failed to load resource: .* 422/]});

test('an ad group is made on the page', async tab => {
  const {page} = tab;
  await open(tab, '#/campaign/4');
  await page.getByRole('button', {name: 'New ad group'}).click();
  await fill(page, 'Name', 'Listeners');
  await fill(page, 'Price', '1.25');
  await fill(page, 'Placements', 'side');
  await fill(page, 'Frequency caps', '3/day, 10/7d/campaign');
  await fill(page, 'Goal of the flight', '2000/clicks');
  await page.locator('.preview').waitFor();
  await form(page).getByRole('button', {name: 'Create'}).click();
  await page.waitForURL(/#\/ad-group\/\d+$/);
  const id = page.url().match(/\d+$/)[0];
  equal(sql(`SELECT name, price_micro::float / 1e6 AS cents, goal_on, goal_count, (SELECT array_agg(placement_id) FROM ads.ad_group_placements p WHERE p.ad_group_id = g.id) AS placements FROM ads.ad_groups g WHERE id = ${id}`),
    {name: 'Listeners', cents: 125, goal_on: 'clicks', goal_count: 2000, placements: ['side']}, 'in PostgreSQL');
}, {...as('manager'), console: [/^error: Failed to load resource: .* 422/]});

test('two editors: the second sees what the first has done', async (tab, {browser}) => {
  const {page} = tab;
  await open(tab, '#/campaign/2');
  await page.getByRole('button', {name: 'Edit budget'}).click();
  const other = await (await browser.newContext(as('admin').context)).newPage();
  await other.goto(`${site}/console/#/campaign/2`);
  await other.getByRole('button', {name: 'Edit budget'}).click();
  await fill(other, 'Amount, EUR', '1500');
  await form(other).getByRole('button', {name: 'Save'}).click();
  await form(other).waitFor({state: 'detached'});
  await other.context().close();
  equal(campaign(2).cents, 150_000, 'the first');

  await fill(page, 'Amount, EUR', '1200');
  await form(page).getByRole('button', {name: 'Save'}).click();
  const conflict = page.locator('.conflict');
  await conflict.waitFor();
  ok(/admin/.test(await conflict.innerText()), `who: ${await conflict.innerText()}`);
  ok(/budget/.test(await conflict.innerText()), `what: ${await conflict.innerText()}`);
  if (shots) {
    await page.screenshot({path: `${shots}/conflict.png`});
  }
  await accessible(page, 'a conflict');
  equal(campaign(2).cents, 150_000, 'nothing is overwritten');
  await form(page).getByRole('button', {name: 'Save on top'}).click();
  await form(page).waitFor({state: 'detached'});
  equal(campaign(2).cents, 120_000, 'the second, on top');
}, {...as('manager'), console: [/^error: Failed to load resource: .* 412/]});

// ---- who sees what ----

const menu = page => page.locator('.top nav a').allInnerTexts();
const buttons = page => page.locator('main button:not(.sorter)').evaluateAll(list => list.map(one => one.textContent.trim()).filter(text => !/^(Copy|Hold)$/.test(text)));

test('a viewer sees all and edits nothing', async tab => {
  await open(tab, '#/campaign/1');
  await tab.page.getByText('Readers of Autumn').first().waitFor();
  equal(await buttons(tab.page), [], 'buttons');
}, as('viewer'));

test('an operator pauses, and moves a budget within a limit', async tab => {
  const {page} = tab;
  await open(tab, '#/campaign/1');
  await page.getByText('Readers of Autumn').first().waitFor();
  equal((await buttons(page)).sort(), ['Edit budget', 'Pause', 'Pause'], 'buttons');
  await page.getByRole('button', {name: 'Edit budget'}).click();
  await fill(page, 'Amount, EUR', '500');
  await page.getByText('an operator may raise a budget by at most 20 %').waitFor();
  await fill(page, 'Amount, EUR', '55');
  await page.locator('.preview').getByText('55.00').waitFor();
  await form(page).getByRole('button', {name: 'Save'}).click();
  await form(page).waitFor({state: 'detached'});
  equal(campaign(1).cents, 5500, 'raised');
}, {...as('operator'), console: [/^error: Failed to load resource: .* 403/]});

test('an advertiser sees what is its own, and not the node', async tab => {
  const {page} = tab;
  await open(tab);
  await page.locator('data-table').first().waitFor();
  const list = await page.locator('campaign-list').innerText();
  ok(/Autumn/.test(list) && !/Winter/.test(list), `campaigns: ${list}`);
  equal(await menu(page), ['Today', 'Campaigns', 'Creatives', 'Reports'], 'pages');
  equal(await page.locator('.stream').count(), 0, 'the stream');
  await open(tab, '#/health');
  await page.getByText('There is no such page').waitFor();
  await open(tab, '#/campaign/1');
  await page.getByText('Readers of Autumn').first().waitFor();
  await looked(tab, 'campaign-advertiser');
  await open(tab, '#/campaign/2');
  await page.getByRole('alert').first().waitFor();
}, {...as('carol'), console: [/^error: Failed to load resource: .* 404/]});

test('a campaign whose ad groups are all paused says so', async tab => {
  psql("UPDATE ads.ad_groups SET status = 'paused' WHERE campaign_id = 2");
  await open(tab);
  const row = tab.page.locator('campaign-list tr', {hasText: 'Winter'});
  await row.getByText('no active ad group').waitFor();
  await row.getByText('Why?').click();
  await tab.page.locator('.problems').getByText('is paused').first().waitFor();
  psql("UPDATE ads.ad_groups SET status = 'active' WHERE campaign_id = 2");
}, as('viewer'));

test('a budget that is exceeded is named', async tab => {
  const {budget} = sql('SELECT budget_micro AS budget FROM ads.campaigns WHERE id = 1');
  psql('UPDATE ads.campaigns SET budget_micro = 2000000 WHERE id = 1');  // 0.02, after impressions of 0.20
  await open(tab);
  await tab.page.locator('.problems li', {hasText: '1 budget or cap is exceeded'}).getByText(/the budget of Autumn, 0\.\d\d of 0\.02 EUR/).waitFor();
  psql(`UPDATE ads.campaigns SET budget_micro = ${budget} WHERE id = 1`);
}, as('viewer'));

// ---- by keyboard ----

test('the page is used by keyboard', async tab => {
  const {page} = tab;
  await open(tab, '#/campaigns');
  await page.locator('tbody tr').first().waitFor();
  await page.keyboard.press('Tab');
  equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the page', 'first');
  await page.keyboard.press('Enter');
  equal(await page.evaluate(() => document.activeElement.id), 'main', 'skipped');
  await page.locator('.sorter', {hasText: 'Campaign'}).focus();
  await page.keyboard.press('Enter');
  const names = () => page.locator('tbody th a').allInnerTexts();
  equal(await names(), (await names()).toSorted((a, b) => a.localeCompare(b, 'en')), 'sorted');
  await page.locator('tbody th a', {hasText: 'Autumn'}).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', {name: 'Pause'}).first().waitFor();
  await page.locator('.head').getByRole('button', {name: 'Pause'}).focus();
  await page.keyboard.press('Enter');
  await page.locator('dialog[open]').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({state: 'detached'});
  equal(await page.evaluate(() => document.activeElement.textContent), 'Pause', 'the focus is back');
}, as('manager'));

await run({site: true});
