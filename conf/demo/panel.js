// The panel: says what an answer and the status mean.
const byId = id => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) {
      node.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== undefined) {
      node.setAttribute(name, value);
    }
  }
  node.append(...children);
  return node;
}

const money = cents => (cents / 100).toFixed(2);
const count = n => n.toLocaleString('en');

const reasons = {
  status: 'not active',
  flight: 'not now',
  schedule: 'not at this hour',
  creative: 'nothing of this size',
  floor: 'below the floor price',
  weight: 'has weight 0',
  device: 'for other devices',
  geo: 'for other countries',
  language: 'for other languages',
  key: 'for other sections',
  url: 'for other pages',
  frequency: 'seen often enough',
  page: 'all it has is on this page',
  exclusive: 'already on this page',
  together: 'its set could not be whole',
  pacing: 'held back to last the day',
  cap: 'budget or cap used up',
  lost: 'another was drawn',
};

const tiers = ['sponsorship', 'standard', 'remnant', 'house'];
const tier = group => group?.priority ?? 'standard';
const weight = group => group?.weight ?? 1;
const label = (known, id) => known.groups.get(id)?.campaign.name ?? `ad group ${id}`;

// Why the one that was served was it.
function why(candidates, served, known) {
  const winner = known.groups.get(served);
  const rivals = candidates.filter(c => c.reason === 'lost').map(c => known.groups.get(c.ad_group)).filter(g => tier(g) === tier(winner));
  if (tier(winner) === 'sponsorship') {
    return 'A sponsor comes before everybody else.';
  }
  if (tier(winner) === 'house') {
    return 'No paid ad was eligible, so a house ad is served.';
  }
  if (rivals.length > 0) {
    const all = weight(winner) + rivals.reduce((sum, g) => sum + weight(g), 0);
    return `Drawn by weight: its chance was ${weight(winner)} in ${all}.`;
  }
  return 'The only one of those who pay that was left.';
}

function refusal(candidate, winner, known) {
  const group = known.groups.get(candidate.ad_group);
  const below = candidate.reason === 'lost' && tiers.indexOf(tier(group)) > tiers.indexOf(tier(winner));
  const because = below ? 'only if no other is left' : reasons[candidate.reason] ?? '';
  return element('li', {},
    element('code', { class: `reason-${candidate.reason}` }, candidate.reason),
    element('span', {}, label(known, candidate.ad_group), element('span', { class: 'note' }, `, ${because}`)));
}

const closed = new Set();  // places whose list the visitor has closed

const steps = { impression: 'pixel counted', viewable: 'in view' };

// What happened to one place of the page. Returns what to call as its pixels are answered.
export function card(place, creative, debug, known, actions) {
  const candidates = debug?.candidates ?? [];
  const winner = known.groups.get(creative?.ad_group);
  const refused = candidates.filter(c => c.reason !== 'served');
  const chips = Object.fromEntries(Object.entries(steps).map(([kind, text]) => [kind, element('li', { class: 'step' }, text)]));
  const said = element('p', { class: 'note', role: 'status' });
  const node = element('article', { class: 'card' },
    element('h3', {}, creative ? label(known, creative.ad_group) : 'Nobody'),
    element('p', { class: 'place' }, known.placements.get(place)?.name ?? place));
  if (creative) {
    const experiment = known.experiments.get(creative.experiment);
    const variant = known.creatives.get(creative.creative)?.name ?? `creative ${creative.creative}`;
    node.append(element('p', {}, why(candidates, creative.ad_group, known),
      experiment ? ` Experiment “${experiment.name}” shows ${variant}.` : ''));
    node.append(element('ol', { class: 'steps' }, element('li', { class: 'step done' }, 'served'), ...Object.values(chips)));
  } else {
    node.append(element('p', {}, 'No ad may be shown here.'));
  }
  if (refused.length > 0) {
    const remember = event => event.target.open ? closed.delete(place) : closed.add(place);
    node.append(element('details', { open: closed.has(place) ? null : '', ontoggle: remember },
      element('summary', {}, `${refused.length} not served`),
      element('ul', { class: 'refused' }, ...refused.map(c => refusal(c, winner, known)))));
  }
  if (creative) {
    const act = async action => { said.textContent = await action(creative).catch(error => error.message); };
    node.append(element('div', { class: 'buttons' },
      element('button', { type: 'button', class: 'small', onclick: () => act(actions.replay) }, 'Load the pixel again'),
      element('button', { type: 'button', class: 'small', onclick: () => act(actions.forge) }, 'Forge it')), said);
  }
  byId('cards').append(node);
  return {
    pixel(kind, code) {
      const chip = chips[kind];
      chip.classList.add(code < 300 ? 'done' : 'bad');
      chip.textContent = code < 300 ? steps[kind] : `${kind} pixel: ${code}`;
    },
    fault(message) {
      said.textContent = message;
    },
  };
}

export function say(text, bad = false) {
  const node = document.querySelector('.summary');
  node.textContent = text;
  node.classList.toggle('bad', bad);
}

// The answer as a whole.
export function answered(answer, places, known) {
  byId('cards').replaceChildren();
  const who = [...new Set(answer.ads.map(one => label(known, one.ad_group)))];
  say(who.length > 0 ? who.join(' · ') : 'No ads for this reader');
  byId('decided').textContent = answer.microseconds > 0
    ? `${answer.ads.length} of ${places} places filled by one request, decided in ${Math.round(answer.microseconds)} µs.`
    : '';
  byId('command').textContent = `curl '${location.origin}${answer.url}'`;
}

// What is used of a limit, with a mark where pacing wants it to be by now.
function bar(name, used, limit, pace, show) {
  const share = n => (limit.amount > 0 ? Math.min(100, 100 * n / limit.amount) : 100) + '%';
  const odds = pace.exhausted || limit.used >= limit.amount ? 'used up'
    : pace.probability >= 1 ? 'open to every request'
      : pace.probability > 0 ? `open to 1 request in ${Math.round(1 / pace.probability)}` : 'closed for now';
  const track = element('div', { class: 'bar', 'aria-hidden': 'true' }, element('i', { class: 'used' }));
  track.style.setProperty('--used', share(limit.used));
  if (pace.strategy !== 'asap') {
    track.append(element('i', { class: 'ideal' }));
    track.style.setProperty('--ideal', share(limit.ideal));
  }
  return element('div', { class: 'limit' },
    element('p', {}, element('strong', {}, name), element('span', {}, `${show(limit.used)} of ${show(limit.amount)} ${used}`)),
    track,
    element('p', { class: 'note' }, `${pace.strategy}: ${odds}`));
}

const used = { serves: 'served today', impressions: 'seen today', clicks: 'clicks today' };

// The status: budgets and caps, counters, events.
export function today(status, known) {
  const bars = (status.campaigns ?? []).map(c =>
    bar(c.name, c.budget.type === 'lifetime' && c.pace.strategy === 'asap' ? 'spent' : 'spent today', c.budget, c.pace, money));
  for (const group of status.ad_groups) {
    for (const limit of group.limits) {
      bars.push(bar(label(known, group.id), used[limit.of], limit, group.pace, n => count(Math.round(n))));
    }
  }
  byId('limits').replaceChildren(...bars);
  const totals = new Map();
  for (const group of status.ad_groups) {
    const total = totals.get(group.campaign) ?? { serves: 0, impressions: 0, clicks: 0, spend_cents: 0 };
    for (const name of Object.keys(total)) {
      total[name] += group[name];
    }
    totals.set(group.campaign, total);
  }
  byId('counters').tBodies[0].replaceChildren(...[...totals].map(([id, total]) => element('tr', {},
    element('th', { scope: 'row' }, known.campaigns.get(id)?.name ?? `campaign ${id}`),
    ...[total.serves, total.impressions, total.clicks].map(n => element('td', {}, count(n))),
    element('td', {}, money(total.spend_cents)))));
  byId('events').textContent = `${count(status.events.written)} events on disk, ${count(status.events.duplicate)} pixels came twice, ` +
    `${count(status.events.rejected)} were forged. Catalog generation ${status.catalog.generation}.`;
}

// --- the catalog -----------------------------------------------------------------

export function verdict(text, kind = '') {
  const node = byId('verdict');
  node.textContent = text;
  node.className = kind;
}

// Selects a part of the editor and scrolls to it.
export function point(editor, part) {
  if (!part) {
    return;
  }
  const before = editor.value.slice(0, part[1]).split('\n');
  const { fontSize, lineHeight } = getComputedStyle(editor);
  editor.focus({ preventScroll: true });
  editor.setSelectionRange(...part);
  editor.scrollTop = (before.length - 5) * parseFloat(lineHeight);
  editor.scrollLeft = before.at(-1).length * 0.62 * parseFloat(fontSize) - editor.clientWidth + 40;
}

// Edits to try: buttons that say what they would do to the catalog as it is.
export function edits(known, apply) {
  const coffee = known.campaigns.get(1);
  const train = [21, 22].map(id => known.groups.get(id)).filter(Boolean);
  const list = [];
  if (coffee) {
    const paused = coffee.status === 'paused';
    list.push([paused ? 'Let Brinewick run' : 'Pause Brinewick', now => { now.campaigns.get(1).status = paused ? 'active' : 'paused'; }]);
    if (coffee.budget) {
      const poor = coffee.budget.amount_cents < 100;
      list.push([poor ? 'Give Brinewick 1,500.00' : 'Leave Brinewick 0.01', now => { now.campaigns.get(1).budget.amount_cents = poor ? 150000 : 1; }]);
    }
  }
  if (train.length > 0) {
    const everywhere = !train[0].targeting?.geos;
    list.push([everywhere ? 'Night trains in Europe only' : 'Night trains for everybody', now => {
      for (const { id } of train) {
        const targeting = now.groups.get(id).targeting ??= {};
        if (everywhere) {
          targeting.geos = ['AT', 'CH', 'DE', 'FR', 'IT'];
        } else {
          delete targeting.geos;
        }
      }
    }]);
  }
  list.push(['Make a mistake', (now, catalog) => { catalog.campaigns[0].ad_groups[0].weight = 'heavy'; }]);
  byId('edits').replaceChildren(...list.map(([text, change]) => element('button', { type: 'button', class: 'small', onclick: () => apply(change) }, text)));
}

// On a phone the panel is drawn up from below.
const toggle = document.querySelector('.panel-toggle');
toggle.addEventListener('click', () => {
  const open = document.querySelector('.panel').classList.toggle('open');
  toggle.setAttribute('aria-expanded', String(open));
  toggle.textContent = open ? 'Hide' : 'Show';
});

const tabs = [...document.querySelectorAll('[role=tab]')];

function choose(tab) {
  for (const one of tabs) {
    one.setAttribute('aria-selected', String(one === tab));
    one.tabIndex = one === tab ? 0 : -1;
    byId(one.getAttribute('aria-controls')).hidden = one !== tab;
  }
}

for (const [at, tab] of tabs.entries()) {
  tab.addEventListener('click', () => choose(tab));
  tab.addEventListener('keydown', event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const next = tabs[(at + step + tabs.length) % tabs.length];
      choose(next);
      next.focus();
    }
  });
}
