// The page: fills its places, says so to the panel, and does what the panel's buttons ask for.
import { ask, pixel, seen, show } from '/spots.js';
import { load, locate, names, pretty, save } from '/catalog.js';
import * as panel from '/panel.js';

const byId = id => document.getElementById(id);
const paper = document.querySelector('.paper');
const sections = [...document.querySelectorAll('article')];
const consentCookie = 'consent_preferences';

let known = names({});
let good = '';     // the catalog that is served, as text
let places = '';   // which were asked for last
let view = new AbortController();  // of this page view: ends when the page is turned

const section = () => sections.find(article => !article.hidden).id;

// A phone gets a smaller ad above the story.
function spots() {
  const boxes = [...document.querySelectorAll('[data-spot]')].filter(box => !box.closest('[hidden]'));
  const top = paper.clientWidth >= 776 ? 'home-top' : 'home-top-small';
  const place = { top, side: 'home-side', story: 'in-article' };
  paper.dataset.top = top;
  return boxes.map(box => ({ box: box.querySelector('.spot-box'), place: place[box.dataset.spot] }));
}

// Who asks. A real site would not say so in the query: see ads_geo and ads_device.
const reader = () => ({ country: byId('country').value, device: byId('device').value, 'kv.section': section() });

async function status() {
  return (await fetch('/console/status', { cache: 'no-store' })).json();
}

async function refresh() {
  try {
    const now = await status();
    panel.today(now, known);
    byId('catalog').classList.toggle('elsewhere', now.postgres !== null);
  } catch {
    panel.say('The status does not answer. Is nginx still running?', true);
  }
}

// One placement of this page view, from the answer to the last pixel.
async function follow(card, box, creative, signal) {
  try {
    await show(box, creative);
    card.pixel('impression', await pixel(creative.impression_url));
    refresh();
    await seen(box, signal);
    card.pixel('viewable', await pixel(creative.viewable_url));
    refresh();
  } catch (error) {
    if (!signal.aborted) {
      card.fault(error.message);
    }
  }
}

async function fill() {
  view.abort();
  view = new AbortController();
  const { signal } = view;
  const here = spots();
  places = here.map(spot => spot.place).join(',');
  try {
    const answer = await ask(here.map(spot => spot.place), { ...reader(), debug: 1 });
    if (signal.aborted) {
      return;
    }
    panel.answered(answer, here.length, known);
    for (const { box, place } of here) {
      const creative = answer.ads.find(one => one.placement === place);
      box.dataset.empty = creative ? '' : 'yes';
      const card = panel.card(place, creative, answer.debug?.find(one => one.placement === place), known, { replay, forge });
      if (creative) {
        follow(card, box, creative, signal);
      } else {
        box.replaceChildren();
      }
    }
    refresh();
  } catch (error) {
    panel.say(`No ads: ${error.message}. A content blocker may have stopped the request.`, true);
  }
}

// The same pixel once more: answered, and not counted.
async function replay(creative) {
  const before = (await status()).events.duplicate;
  const code = await pixel(creative.impression_url);
  const now = await status();
  panel.today(now, known);
  return now.events.duplicate > before
    ? `Answered with ${code}, not counted: duplicates are now ${now.events.duplicate}.`
    : `Answered with ${code}.`;
}

// One character of the token is another.
async function forge(creative) {
  const url = creative.impression_url.replace(/t=(.)/, (_, first) => 't=' + (first === 'A' ? 'B' : 'A'));
  const code = await pixel(url);
  await refresh();
  return code === 400 ? 'Answered with 400: the signature does not fit.' : `Answered with ${code}.`;
}

// Readers without consent, from the same country, one after the other.
async function crowd() {
  const button = byId('crowd');
  const label = button.textContent;
  button.disabled = true;
  const anonymous = { credentials: 'omit' };
  try {
    for (let left = 50; left > 0; left--) {
      button.textContent = `${left} to go`;
      const { ads } = await ask(spots().map(spot => spot.place), reader(), anonymous);
      await Promise.all(ads.map(creative => pixel(creative.impression_url, anonymous)));
      if (left % 10 === 1) {
        await refresh();
      }
    }
  } catch (error) {
    panel.say(`Stopped: ${error.message}.`, true);
  }
  button.textContent = label;
  button.disabled = false;
}

function turn() {
  const wanted = sections.find(article => '#' + article.id === location.hash) ?? sections[0];
  for (const article of sections) {
    article.hidden = article !== wanted;
  }
  for (const a of document.querySelectorAll('.mast nav a')) {
    a.toggleAttribute('aria-current', a.hash === '#' + wanted.id);
  }
  fill();
}

// --- consent ---------------------------------------------------------------------

const consents = () => document.cookie.split('; ').some(c => c.startsWith(`${consentCookie}=`) && decodeURIComponent(c).includes(':true'));

function showConsent() {
  const yes = consents();
  byId('consent').checked = yes;
  byId('forget').hidden = !yes;
  byId('consent-note').textContent = yes && navigator.globalPrivacyControl
    ? 'This browser sends Global Privacy Control, which is a no: one no wins.'
    : yes
      ? 'nginx has set a random session: frequency caps hold, and an experiment shows you the same variant each time.'
      : 'No cookie is set and visitors are not recognised: frequency caps do not apply, and events have no identifiers.';
}

byId('consent').addEventListener('change', async event => {
  const value = encodeURIComponent(JSON.stringify({ analytics: event.target.checked }));
  document.cookie = `${consentCookie}=${value}; path=/; max-age=86400; samesite=lax`;
  if (!event.target.checked) {
    await fetch('/visitor/new', { method: 'POST' });
  }
  showConsent();
  fill();
});

byId('forget').addEventListener('click', async () => {
  await fetch('/visitor/new', { method: 'POST' });
  fill();
});

// --- the catalog --------------------------------------------------------------------

const editor = byId('editor');

async function readCatalog() {
  good = editor.value = await load();
  known = names(JSON.parse(good));
}

// Saves what stands in the editor, and turns the page when it is served.
async function publish() {
  if (editor.value === good) {
    panel.verdict('This is the catalog that is served.', 'good');
    return;
  }
  panel.verdict('Saving…');
  byId('save').disabled = true;
  const text = editor.value;
  const result = await save(text, good, status).catch(error => ({ error: error.message }));
  byId('save').disabled = false;
  if (result.error) {
    panel.verdict(`Refused, and the last good catalog serves on. ${result.error}`, 'bad');
    panel.point(editor, locate(text, result.error));
    return;
  }
  good = text;
  known = names(JSON.parse(text));
  panel.edits(known, edit);
  panel.verdict(`Live on every worker after ${result.seconds.toFixed(1)} s, as generation ${result.generation}.`, 'good');
  fill();
}

// Publishes the catalog that is served with a change.
async function edit(change) {
  const catalog = JSON.parse(good);
  change(names(catalog), catalog);
  editor.value = pretty(catalog) + '\n';
  await publish();
}

byId('save').addEventListener('click', publish);
byId('restore').addEventListener('click', async () => {
  editor.value = await load('/catalog-shipped.json');
  await publish();
});

// --- start -----------------------------------------------------------------------------

byId('again').addEventListener('click', fill);
byId('crowd').addEventListener('click', crowd);
byId('country').addEventListener('change', fill);
byId('device').addEventListener('change', () => {
  paper.dataset.device = byId('device').value;
  fill();
});
window.addEventListener('hashchange', turn);
new ResizeObserver(() => {
  if (places && spots().map(spot => spot.place).join(',') !== places) {
    fill();
  }
}).observe(paper);
document.addEventListener('visibilitychange', () => document.hidden || refresh());
setInterval(() => document.hidden || refresh(), 2000);

paper.dataset.device = byId('device').value;
showConsent();
readCatalog().catch(error => panel.verdict(`The catalog cannot be read: ${error.message}.`, 'bad')).finally(() => {
  panel.edits(known, edit);
  turn();
});
