// Short messages about what was done, in a corner, read out by screen readers.
import {html, nothing, type TemplateResult} from 'lit';
import {behind, type FleetNode, type Serving} from '../core/fleet.ts';
import {live} from '../core/live.ts';
import {Store} from '../core/store.ts';
import {time} from '../core/format.ts';
import {define, View} from './view.ts';

interface Notice {
  id: number;
  text: unknown;
  /** What became of it: when the node serves what was saved. */
  then: string;
}

const shownFor = 12_000;
const patience = 30_000;
const every = 1000;
const most = 3;
const notices = new Store<Notice[]>('notices');
notices.value = [];
let last = 0;

const change = (list: Notice[]): void => notices.set(list);
const drop = (id: number): void => {
  timers.delete(id);
  change(notices.value!.filter(notice => notice.id !== id));
};

const timers = new Map<number, number>();
const keep = (id: number): void => {
  clearTimeout(timers.get(id));
  timers.set(id, window.setTimeout(() => drop(id), shownFor));
};

export const notify = (text: unknown): number => {
  const id = ++last;
  change([...notices.value!.slice(1 - most), {id, text, then: ''}]);
  keep(id);
  return id;
};

const named = (nodes: FleetNode[]) => nodes.map(({node, name}) => name || `node ${node}`).join(', ');

/** Tells of a change of the catalog, and of the moment from which this node, or all nodes of a fleet, serve it. */
export const notifySaved = (text: unknown, before: Serving): void => {
  const id = notify(text);
  const begin = Date.now();
  const late = () => Date.now() - begin > patience;
  const then = (words: string) => {
    if (timers.has(id)) {
      keep(id);
      change(notices.value!.map(notice => notice.id === id ? {...notice, then: words} : notice));
    }
  };
  const all = before.nodes.size;
  if (all > 0) {
    const ask = async () => {
      const waiting = await behind(before).catch(() => undefined);
      if (waiting?.length === 0) {
        then(all === 1 ? `Served by the node since ${time(Date.now())}.` : `Served by all ${all} nodes since ${time(Date.now())}.`);
      } else {
        then(late() ? `Not served yet by ${waiting ? named(waiting) : 'all nodes'}: see Health.` : waiting ? `Served by ${all - waiting.length} of ${all} nodes; waiting for ${named(waiting)}…` : 'Waiting for the nodes to serve it…');
        if (!late()) {
          window.setTimeout(() => void ask(), every);
        }
      }
    };
    then(`Waiting for ${all === 1 ? 'the node' : `${all} nodes`} to serve it…`);
    void ask();
    return;
  }
  if (before.generation === undefined) {
    return;
  }
  then('Waiting for the node to serve it…');
  const stop = live.follow(() => {
    if (live.value!.generation !== before.generation) {
      then(`Served by this node since ${time(live.value!.time)}, as generation ${live.value!.generation}.`);
    } else if (late()) {
      then('The node serves the same catalog as before.');
    } else {
      return;
    }
    stop();
  });
};

class NoticeList extends View {
  protected override stores(): Store<unknown>[] {
    return [notices];
  }

  protected override render(): TemplateResult {
    return html`<div class="notices" role="status" aria-live="polite">${notices.value!.map(notice => html`<div class="notice-card"><div>${notice.text}${notice.then ? html`<p class="dim">${notice.then}</p>` : nothing}</div>
      <button class="quiet" aria-label="Dismiss" @click=${() => drop(notice.id)}>×</button></div>`)}</div>`;
  }
}

define('notice-list', NoticeList);
