// Short messages about what was done, in a corner, read out by screen readers.
import {html, nothing, type TemplateResult} from 'lit';
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
const notices = new Store<Notice[]>('notices');
notices.value = [];
let last = 0;

const change = (list: Notice[]): void => notices.set(list);
const drop = (id: number): void => change(notices.value!.filter(notice => notice.id !== id));

export const notify = (text: unknown): number => {
  const id = ++last;
  change([...notices.value!, {id, text, then: ''}]);
  window.setTimeout(() => drop(id), shownFor);
  return id;
};

/** Tells of a change of the catalog, and of the moment from which the node serves it. */
export const notifySaved = (text: unknown): void => {
  const before = live.value?.generation;
  const id = notify(text);
  const begin = Date.now();
  if (before === undefined) {
    return;
  }
  const then = (words: string) => change(notices.value!.map(notice => notice.id === id ? {...notice, then: words} : notice));
  then('Waiting for the node to serve it…');
  const stop = live.follow(() => {
    if (live.value!.generation !== before) {
      then(`Served by this node since ${time(live.value!.time)}, as generation ${live.value!.generation}.`);
    } else if (Date.now() - begin > patience) {
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
