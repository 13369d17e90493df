// Experiments: what their figures say so far, and when they will say more. Intervals hold however often one looks.
import {count, day, plural, share, span} from '../core/format.ts';
import {poll, type Poll} from '../core/poll.ts';
import {address} from '../core/router.ts';
import {session} from '../core/session.ts';
import type {Store} from '../core/store.ts';
import {act} from '../ui/actions.ts';
import {command, commandLine} from '../ui/command.ts';
import {ask} from '../ui/edit.ts';
import {statusChip} from '../ui/pace.ts';
import {source, waiting} from '../ui/source.ts';
import {facts, table} from '../ui/table.ts';
import {define, html, nothing, svg, View, type TemplateResult} from '../ui/view.ts';

interface Row {
  id: number;
  name: string;
  ad_group: number;
  status: 'draft' | 'running' | 'completed';
  metric: string;
  winner: number | null;
  delivery: {trials: number};
}

interface Variant {
  creative: number;
  name: string;
  share: number;
  trials: number;
  successes: number;
  rate: number;
  wilson: [number, number];
  effect: number | null;
  interval: [number, number] | null;
  p: number | null;
}

interface Analysis extends Omit<Row, 'delivery'> {
  alpha: number;
  min_sample: number;
  mde: number;
  trials: number;
  since: string | null;
  needed_trials: number | null;
  analysis: {verdict: 'sample_ratio' | 'too_few' | 'open' | 'decided'; winner: number | null; why: string; alpha: number; variants: Variant[]; sample_ratio: {statistic: number; p: number}};
}

const every = 30_000;
const verdicts: Record<Analysis['analysis']['verdict'], [word: string, chip: string]> = {
  sample_ratio: ['The split is wrong', 'alert'], too_few: ['Too few trials', 'paused'], open: ['Undecided', 'paused'], decided: ['Decided', 'ok'],
};
const points = (value: number): string => `${value > 0 ? '+' : value < 0 ? '−' : ''}${(Math.abs(value) * 100).toFixed(2)} points`;

/** An interval on a scale that all rows share, with zero as a line. */
const interval = ([low, high]: [number, number], at: number, most: number): TemplateResult => {
  const x = (value: number) => 80 + Math.max(-1, Math.min(1, value / most)) * 76;
  return html`<svg class="interval" viewBox="0 0 160 14" role="img" aria-label="from ${points(low)} to ${points(high)}">${svg`<line class="zero" x1="80" x2="80" y1="0" y2="14"></line>
    <line class="range" x1=${x(low)} x2=${x(high)} y1="7" y2="7"></line><circle cx=${x(at)} cy="7" r="3.5"></circle>`}</svg>`;
};

/** Days until a verdict on an effect of the size that is worth finding, at the rate of the trials so far. */
export const daysLeft = ({since, needed_trials: needed, analysis: {variants}}: Analysis, now = Date.now()): number | null => {
  const elapsed = since ? (now - Date.parse(since)) / 86_400_000 : 0;
  const least = Math.min(...variants.map(({trials}) => trials));
  return needed === null || elapsed <= 0 || least === 0 ? null : Math.max(0, (needed - least) / (least / elapsed));
};

class ExperimentsPage extends View {
  static override properties = {experiment: {}};
  declare experiment: string;
  private list!: Poll<Row[]>;
  private analysis!: Poll<Analysis>;

  protected override stores(): Store<unknown>[] {
    const id = encodeURIComponent(this.experiment);
    this.list = poll('PostgreSQL', 'api/experiments', every);
    this.analysis = poll('PostgreSQL', `api/experiments/${id}/analysis`, every);
    return this.experiment ? [this.analysis] : [this.list];
  }

  private all(): TemplateResult {
    const rows = this.list.value;
    return html`<div class="head"><h1>Experiments</h1></div><section class="section"><div class="section-head"><h2>All</h2>${source(this.list)}</div>${rows ? table({
      caption: 'Experiments', rows, identify: row => row.id, empty: 'There are no experiments yet: nginx-ads experiment create makes one.',
      columns: [
        {name: 'Experiment', by: row => row.name, cell: row => html`<a href=${address('experiments', row.id)}>${row.name || `Experiment ${row.id}`}</a><span class="cell-note">${row.id}</span>`},
        {name: 'Status', by: row => row.status, cell: row => statusChip(row.status)},
        {name: 'Ad group', by: row => row.ad_group, cell: row => html`<a href=${address('why', row.ad_group)}>${row.ad_group}</a>`},
        {name: 'Compares', cell: row => row.metric === 'ctr' ? 'click rate' : `${row.metric} rate`},
        {name: 'Trials', number: true, by: row => row.delivery.trials, cell: row => count(row.delivery.trials)},
        {name: 'Winner', cell: row => row.winner === null ? '–' : html`<a href=${address('creative', row.winner)}>creative ${row.winner}</a>`},
      ],
    }) : waiting(this.list)}</section>`;
  }

  private actions({id, name, status, winner, analysis}: Analysis): TemplateResult {
    const of = {kind: 'experiment' as const, id, name};
    const start = () => void ask({title: `Start experiment “${name || id}”?`, save: 'Start', method: 'POST', path: `/experiments/${id}/start`, fields: [], body: () => ({}), command: () => commandLine('experiment', 'start', id)});
    const stop = () => void ask({
      title: `Stop experiment “${name || id}”?`, save: 'Stop', method: 'POST', path: `/experiments/${id}/stop`,
      note: analysis.verdict === 'decided' ? 'It has a verdict.' : 'It has no verdict yet: a winner that is named now is a guess.',
      fields: [{path: 'winner', label: 'Winner', kind: 'choice', value: analysis.winner === null ? '' : String(analysis.winner), choices: [['', 'none'], ...analysis.variants.map(({creative, name: text}): [string, string] => [String(creative), `${creative} ${text}`])]}],
      body: values => ({winner: values['winner'] ? Number(values['winner']) : null}), command: values => commandLine('experiment', 'stop', id, ...values['winner'] ? ['--winner', values['winner']] : []),
    });
    return html`<div class="actions">
      ${status === 'draft' && session.may('startExperiment') ? html`<button @click=${start}>Start</button>` : nothing}
      ${status === 'running' && session.may('pauseExperiment') ? html`<button @click=${() => void act('pause', of)}>Pause</button>` : nothing}
      ${status === 'running' && session.may('stopExperiment') ? html`<button @click=${stop}>Stop…</button>` : nothing}
      ${winner === null ? nothing : html`<a href=${address('creative', winner)}>The winner</a>`}</div>`;
  }

  private outlook(of: Analysis): string {
    const {verdict, variants} = of.analysis;
    if (verdict === 'decided' || of.status === 'completed') {
      return 'none, it is decided';
    }
    const days = daysLeft(of);
    if (verdict === 'sample_ratio') {
      return 'not before the split is right';
    }
    if (of.status !== 'running') {
      return 'not while it does not run';
    }
    if (days === null) {
      return 'unknown before the first successes';
    }
    const least = Math.min(...variants.map(({trials}) => trials));
    return `${days < 1 ? 'less than a day' : plural(Math.ceil(days), 'day')}, if the difference is ${points(of.mde)} (${count(of.needed_trials)} trials each, ${count(least)} so far); longer or never, if it is less`;
  }

  private one(): TemplateResult {
    const of = this.analysis.value;
    if (!of) {
      return html`<div class="head"><h1>Experiment ${this.experiment}</h1><a href="#/experiments">All experiments</a></div>${waiting(this.analysis)}`;
    }
    const {analysis} = of;
    const [word, chip] = verdicts[analysis.verdict];
    const split = analysis.verdict === 'sample_ratio';
    const [first, ...others] = analysis.variants;
    const most = Math.max(of.mde, ...others.flatMap(({interval: range, effect}) => range ? [...range.map(Math.abs), Math.abs(effect ?? 0)].filter(Number.isFinite) : []));
    return html`<div class="head"><h1>${of.name || `Experiment ${of.id}`}</h1>${statusChip(of.status)}<a href="#/experiments">All experiments</a>${this.actions(of)}</div>
      <div class="columns"><section class="section"><div class="section-head"><h2>Verdict</h2>${source(this.analysis)}</div>
        <p class="notice ${split ? 'bad' : analysis.verdict === 'decided' ? 'good' : ''}"><span class="chip ${chip}">${word}</span> ${analysis.why}</p>
        ${table({
          caption: 'Variants of the experiment', rows: analysis.variants, identify: row => row.creative,
          columns: [
            {name: 'Creative', cell: row => html`<a href=${address('creative', row.creative)}>${row.name || row.creative}</a><span class="cell-note">${row.creative}${analysis.verdict === 'decided' && analysis.winner === row.creative ? ', the winner' : row === first ? ', the control' : ''}</span>`},
            {name: 'Share', number: true, wide: true, cell: row => share(row.share)},
            {name: 'Trials', number: true, cell: row => count(row.trials)},
            {name: of.metric === 'ctr' ? 'Clicked' : 'Converted', number: true, cell: row => count(row.successes)},
            {name: 'Rate', number: true, cell: row => html`${share(row.rate, 2)}`},
            {name: `Against ${first?.creative ?? 'the first'}`, title: 'the difference of the rates, with its always-valid interval', cell: row => row === first ? html`<span class="dim">the control</span>` : split ? html`<span class="dim">not shown: the split is wrong</span>`
              : row.effect === null || !row.interval ? html`<span class="dim">too few trials</span>` : html`${points(row.effect)}${interval(row.interval, row.effect, most)}<span class="cell-note">${points(row.interval[0])} to ${points(row.interval[1])}</span>`},
          ],
        })}<p class="dim">${share(1 - analysis.alpha)} intervals that hold at every look; no winner is named before there is a verdict.</p></section>
        <section class="section"><div class="section-head"><h2>Plan</h2>${source(this.analysis)}</div>${facts([
          ['Days to a verdict', this.outlook(of)],
          ['Split', html`<span class="chip ${split ? 'alert' : 'ok'}">${split ? 'wrong' : 'as it should be'}</span> <span class="dim">p = ${analysis.sample_ratio.p.toPrecision(2)}</span>`],
          ['Ad group', html`<a href=${address('why', of.ad_group)}>${of.ad_group}</a>`],
          ['Runs since', of.since ? `${day(of.since)}, ${span((Date.now() - Date.parse(of.since)) / 1000)} ago` : 'no trial yet'],
          ['Minimum per variant', plural(of.min_sample, 'trial')],
          ['Detectable difference', points(of.mde)],
          ['Significance level', share(of.alpha)],
        ])}${command(commandLine('experiment', 'analyze', of.id))}</section></div>`;
  }

  protected override render(): TemplateResult {
    return this.experiment ? this.one() : this.all();
  }
}

define('page-experiments', ExperimentsPage);
