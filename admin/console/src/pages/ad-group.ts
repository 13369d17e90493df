// An ad group: what it may be served for and at which price, to be looked at and edited.
import {count, money, share} from '../core/format.ts';
import {poll, type Poll} from '../core/poll.ts';
import {address, router} from '../core/router.ts';
import {session} from '../core/session.ts';
import {groupStatus, type NodeStatus} from '../core/status.ts';
import type {Store} from '../core/store.ts';
import {groupWhy, type Diagnoses} from '../core/why.ts';
import {act} from '../ui/actions.ts';
import {ask, editForm, WrongInput, type Edited} from '../ui/edit.ts';
import {choiceMember, fieldsOf, flagsOf, listMember, moneyMember, numberMember, patchOf, textMember, type Member} from '../ui/members.ts';
import {pace, paceOf, statusChip} from '../ui/pace.ts';
import {readable, withoutCommands} from '../ui/prose.ts';
import {source, waiting} from '../ui/source.ts';
import {facts} from '../ui/table.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';

interface FrequencyCap {
  count: number;
  per?: string | null;
  level?: string | null;
}

export interface AdGroup {
  id: number;
  campaign: number;
  name: string;
  status: string;
  priority: string;
  weight: number;
  price: {model: string; amount_cents: number} | null;
  frequency_caps?: FrequencyCap[] | null;
  targeting?: Record<string, string[]> | null;
  delivery?: {of: string; unit: string; done: number; target: number; delivered: number | null} | null;
}

const capText = ({count: n, per, level}: FrequencyCap) => `${n}/${per ?? 'day'}${level && level !== 'ad_group' ? `/${level}` : ''}`;

const caps: Member = {
  path: 'frequency_caps', label: 'Frequency caps', hint: 'ads per visitor: 3/day, 10/7d, 1/lifetime/campaign',
  read: object => ((object as AdGroup | undefined)?.frequency_caps ?? []).map(capText).join(', '),
  write: text => text.split(',').map(word => word.trim()).filter(Boolean).map(word => {
    const [, n, per, level] = word.match(/^(\d+)\/([a-z0-9]+)(?:\/(ad_group|campaign|creative))?$/) ?? [];
    if (!n) {
      throw new WrongInput([{object: '', path: 'frequency_caps', message: `must be like 3/day, not "${word}"`}]);
    }
    return {count: Number(n), per, ...level ? {level} : {}};
  }),
  flag: text => text.trim() ? text.split(',').flatMap(word => ['--cap', word.trim()]) : ['--cap', 'none'],
};

const goal: Member = {
  path: 'pacing.goal', label: 'Goal of the flight', hint: '500000 impressions, or 2000/clicks; empty: none',
  read: object => {
    const of = (object as {pacing?: {goal?: {impressions?: number; clicks?: number} | null} | null} | undefined)?.pacing?.goal;
    return of?.clicks ? `${of.clicks}/clicks` : of?.impressions ? String(of.impressions) : '';
  },
  write: text => {
    const [, n, clicks] = text.trim().match(/^(\d+)(\/clicks)?$/) ?? [];
    if (text.trim() && !n) {
      throw new WrongInput([{object: '', path: 'pacing.goal', message: 'must be a number, or like 2000/clicks'}]);
    }
    return n ? clicks ? {clicks: Number(n), impressions: null} : {impressions: Number(n), clicks: null} : null;
  },
  flag: text => ['--goal', text.trim() || 'none'],
};

const members = (placements: readonly string[]): Member[] => [
  textMember('name', 'Name', '--name', {required: true}),
  choiceMember('price.model', 'Price per', '', [['cpm', 'thousand impressions (CPM)'], ['vcpm', 'thousand viewable impressions (vCPM)'], ['cpc', 'click (CPC)'], ['cpa', 'conversion (CPA)'], ['flat', 'impression and click (flat)']], 'cpm'),
  moneyMember('price.amount_cents', 'Price', text => ['--price', text]),
  choiceMember('priority', 'Tier', '--priority', ['sponsorship', 'standard', 'remnant', 'house'], 'standard', {hint: 'each tier is tried before the next'}),
  numberMember('weight', 'Weight', '--weight', {hint: 'its share of the draw in its tier; 0: never'}),
  listMember('targeting.placements', 'Placements', '--placements', {hint: `empty: all${placements.length ? ` (${placements.slice(0, 6).join(', ')}${placements.length > 6 ? ', …' : ''})` : ''}`}),
  listMember('targeting.geos', 'Countries and regions', '--geos', {hint: 'US, US-CA; ! excludes; empty: all'}),
  listMember('targeting.devices', 'Devices', '--devices', {hint: 'desktop, mobile, tablet, tv, bot; empty: all'}),
  listMember('targeting.languages', 'Languages', '--languages', {hint: 'en, pt-br; empty: all'}),
  choiceMember('pacing.strategy', 'Pacing', '--strategy', [['adaptive', 'adaptive: by learned traffic'], ['even', 'even over the day'], ['asap', 'as fast as possible'], ['pid', 'pid'], ['probabilistic', 'probabilistic']], 'adaptive'),
  numberMember('pacing.daily_impression_cap', 'Daily maximum', '--daily-impressions', {hint: 'empty: no limit of its own'}),
  goal,
  caps,
];

// The price is one flag that is named for its model.
const lineOf = (begin: string, list: readonly Member[], object: unknown, values: Record<string, string>): string => {
  const model = values['price.model'] ?? 'cpm';
  const priced = (values['price.amount_cents'] ?? '') !== list[2]!.read(object) || model !== list[1]!.read(object);
  const rest = list.filter(({path}) => !path.startsWith('price.'));
  return [begin, ...priced ? [`--${model} ${values['price.amount_cents'] || '0'}`] : [], flagsOf(rest, object, values)].filter(Boolean).join(' ');
};

/** Asks for a new ad group of a campaign. */
export const createAdGroup = (campaign: number, placements: readonly string[]): Promise<Edited | undefined> => {
  const list = members(placements);
  return ask({
    title: 'New ad group', save: 'Create', method: 'POST', path: '/ad-groups', note: 'It is active: its campaign decides when it is served. Creatives come next.',
    fields: fieldsOf(list, {weight: 1}),
    body: values => ({campaign, ...patchOf(list, {}, values), price: {model: values['price.model'], ...(patchOf(list, {}, values)['price'] as object | undefined)}}),
    command: values => lineOf(`nginx-ads ad-group create --campaign ${campaign}`, list, {}, values),
  });
};

class AdGroupPage extends View {
  static override properties = {group: {}, focused: {}, editing: {state: true}};
  declare group: string;
  /** The path of the member that brought us here. */
  declare focused: string;
  declare private editing: boolean;
  private object!: Poll<AdGroup>;
  private why!: Poll<Diagnoses>;
  private node!: Poll<NodeStatus>;
  private readonly placements = poll<{id: string}[]>('PostgreSQL', 'api/placements', 60_000);

  protected override stores(): Store<unknown>[] {
    const id = encodeURIComponent(this.group);
    this.object = poll('PostgreSQL', `api/ad-groups/${id}`, 15_000);
    this.why = groupWhy(id);
    this.node = groupStatus(id);
    this.editing = Boolean(this.focused) && session.may('updateAdGroup') && session.value?.role !== 'operator';
    return [this.object, ...session.may('whyAdGroup') ? [this.why] : [], ...session.seesNode ? [this.node] : [], ...session.may('listPlacements') ? [this.placements] : []];
  }

  // Once the form is there, the field that is to be changed.
  protected override updated(): void {
    const form = this.querySelector('edit-form');
    if (this.focused && form) {
      const focused = this.focused;
      this.focused = '';
      void (form as View).updateComplete.then(() => form.querySelector<HTMLElement>(`[name="${CSS.escape(focused)}"]`)?.focus());
    }
  }

  private done = () => {
    this.editing = false;
  };

  private form(group: AdGroup): TemplateResult {
    const list = members((this.placements.value ?? []).map(({id}) => id));
    return editForm({
      title: `Ad group ${group.id}`, save: 'Save', method: 'PATCH', path: `/ad-groups/${group.id}`, version: this.object.version,
      fields: fieldsOf(list, group), body: values => patchOf(list, group, values), command: values => lineOf(`nginx-ads ad-group update ${group.id}`, list, group, values),
      saved: this.done, cancel: this.done,
    });
  }

  private actions(group: AdGroup): TemplateResult {
    const of = {kind: 'ad-group' as const, id: group.id, name: group.name};
    return html`<div class="actions">
      ${group.status === 'active' && session.may('pauseAdGroup') ? html`<button @click=${() => void act('pause', of)}>Pause</button>` : nothing}
      ${(group.status === 'paused' || group.status === 'draft') && session.may('resumeAdGroup') ? html`<button class="primary" @click=${() => void act('resume', of)}>Resume</button>` : nothing}
      ${session.may('cloneAdGroup') ? html`<button @click=${() => void act('clone', of).then(made => made && router.go(address('ad-group', made.id)))}>Clone</button>` : nothing}
      ${group.status !== 'archived' && session.may('archiveAdGroup') ? html`<button @click=${() => void act('archive', of)}>Archive</button>` : nothing}</div>`;
  }

  private terms(group: AdGroup): TemplateResult {
    const list = members([]);
    const shown = list.filter(({path}) => path !== 'name' && !path.startsWith('price.')).map((member): [string, unknown] => [member.label, member.read(group) || html`<span class="dim">${/targeting/.test(member.path) ? 'all' : 'none'}</span>`]);
    return facts([['Price', group.price ? `${money(group.price.amount_cents, this.node.value?.catalog.currency)} ${group.price.model}` : 'free'], ...shown]);
  }

  protected override render(): TemplateResult {
    const group = this.object.value;
    if (!group) {
      return html`<div class="head"><h1>Ad group ${this.group}</h1></div>${waiting(this.object)}`;
    }
    const diagnosis = this.why.value?.ad_groups[0];
    const node = this.node.value?.ad_groups[0];
    const may = session.may('updateAdGroup') && session.value?.role !== 'operator' && group.status !== 'archived';
    return html`<div class="head"><h1>${group.name || `Ad group ${group.id}`}</h1>${statusChip(group.status)}<a href=${address('campaign', group.campaign)}>its campaign</a>${session.may('whyAdGroup') ? html`<a href=${address('why', group.id)}>Why is it not served more?</a>` : nothing}${session.may('createCreative') && group.status !== 'archived' ? html`<a href=${address('creative', 'new', {group: String(group.id)})}>New creative</a>` : nothing}${this.actions(group)}</div>
      <div class="columns"><section class="section"><div class="section-head"><h2>Terms</h2>${may && !this.editing ? html`<button class="quiet" @click=${() => { this.editing = true; }}>Edit<span class="unseen"> terms</span></button>` : nothing}${source(this.object)}</div>${this.editing ? this.form(group) : this.terms(group)}</section>
        <section class="section"><div class="section-head"><h2>Delivery</h2>${source(session.seesNode ? this.node : this.object)}</div>${facts([
          ...group.delivery ? [['Delivered', `${count(group.delivery.done)} of ${count(group.delivery.target)} ${group.delivery.unit}, ${share(group.delivery.delivered)}`] as [string, unknown]] : [],
          ...node ? [['Pace', pace(this.object.value?.status === 'paused' ? 'paused' : paceOf(node.pace))], ['Served today', count(node.serves)], ['Impressions', count(node.impressions)], ['Clicks', count(node.clicks)]] as [string, unknown][] : [],
        ])}${diagnosis?.causes.map(cause => html`<p class="notice">${readable(cause.what)} <span class="dim">${withoutCommands(cause.remedy)}</span></p>`) ?? nothing}</section></div>`;
  }
}

define('page-ad-group', AdGroupPage);
