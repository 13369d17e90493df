// Who changed what, in all campaigns; an edit can be undone here.
import type {HistoryEdit} from '../core/http.ts';
import {poll, type Poll} from '../core/poll.ts';
import {withQuery} from '../core/http.ts';
import {address, router} from '../core/router.ts';
import {session} from '../core/session.ts';
import type {Store} from '../core/store.ts';
import type {Kind} from '../ui/actions.ts';
import {commandLine} from '../ui/command.ts';
import {edit, type Change} from '../ui/diff.ts';
import {ask} from '../ui/edit.ts';
import {source, waiting} from '../ui/source.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';

const every = 15_000;
const atOnce = 100;
const most = 12;  // changes of one edit: an import has many

const kinds: Record<string, [kind: Kind, operation: string]> = {
  campaign: ['campaign', 'revertCampaign'], 'ad group': ['ad-group', 'revertAdGroup'], creative: ['creative', 'revertCreative'],
  placement: ['placement', 'revertPlacement'], experiment: ['experiment', 'revertExperiment'],
};
const pageOf: Record<string, string> = {campaign: 'campaign', 'ad group': 'why', creative: 'creative', placement: 'placement', experiment: 'experiments'};

const revert = (version: string, {object, id, name}: Change): void => {
  const [kind] = kinds[object]!;
  const what = `${object} ${name ? `“${name}”` : id}`;
  void ask({
    title: `Undo this edit of ${what}?`, save: 'Undo', method: 'POST', path: `/${kind}s/${encodeURIComponent(id)}/revert`, fields: [],
    note: 'Restores the object as it was before this edit; later edits of it are undone as well. The undo is itself an edit: it is checked, and can be undone.',
    body: () => ({before: Number(version)}), command: () => commandLine(kind, 'revert', id, '--before', version),
  });
};

class ChangesPage extends View {
  static override properties = {actor: {}, until: {}};
  declare actor: string;
  declare until: string;
  private audit!: Poll<HistoryEdit[]>;

  protected override stores(): Store<unknown>[] {
    this.audit = poll('PostgreSQL', withQuery('api/audit', {actor: this.actor, before: this.until, limit: atOnce}), every);
    return [this.audit];
  }

  private actions({version, changes}: HistoryEdit): TemplateResult {
    const seen = changes.filter(({object}) => pageOf[object]).slice(0, 3);
    const undone = changes.filter(one => one.change !== 'added' && kinds[one.object] && session.may(kinds[one.object]![1])).slice(0, 3);
    return html`${changes.length > most ? html`<span class="dim">${changes.length} changes, the first ${most} of which are</span>` : nothing}<span class="edit-actions">${seen.map(one => html`<a href=${address(pageOf[one.object]!, one.id)}>${one.object} ${one.id}</a>`)}
      ${undone.map(one => html`<button class="quiet" @click=${() => revert(version, one)}>Undo<span class="unseen"> the edit ${version} of</span>${undone.length > 1 ? html` ${one.object} ${one.id}` : html`<span class="unseen"> ${one.object} ${one.id}</span>`}</button>`)}</span>`;
  }

  protected override render(): TemplateResult {
    const list = this.audit.value;
    const actors = [...new Set([...(list ?? []).map(({actor}) => actor), ...this.actor ? [this.actor] : []])].sort();
    const last = list?.at(-1);
    return html`<div class="head"><h1>Changes</h1>
        <label class="inline">By <select @change=${(event: Event) => router.go(address('changes', '', {actor: (event.target as HTMLSelectElement).value}))}>
          <option value="">everybody</option>${actors.map(actor => html`<option value=${actor} ?selected=${actor === this.actor}>${actor}</option>`)}</select></label></div>
      <section class="section"><div class="section-head"><h2>${this.until ? `Before version ${this.until}` : 'The newest first'}</h2>${source(this.audit)}</div>
      ${list ? list.length ? html`<ol class="history">${list.map(one => edit({...one, changes: one.changes.slice(0, most)}, this.actions(one)))}</ol>` : html`<p class="notice">Nobody has changed anything${this.actor ? ', as this user' : ''}.</p>` : waiting(this.audit)}
      <p>${this.until ? html`<a href=${address('changes', '', {actor: this.actor})}>The newest</a> ` : nothing}${last && list!.length > 1 ? html`<a href=${address('changes', '', {actor: this.actor, before: last.version})}>Older</a>` : nothing}</p>
      </section>`;
  }
}

define('page-changes', ChangesPage);
