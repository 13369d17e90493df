// The pages, in the order of the menu. A page is a View in a file of its own and an entry here; ../../README.md says how.
import {html, type TemplateResult} from 'lit';
import type {Route} from '../core/router.ts';
import {session} from '../core/session.ts';
import './ad-group.ts';
import './campaign.ts';
import './campaigns.ts';
import './changes.ts';
import './creative.ts';
import './experiments.ts';
import './health.ts';
import './placement.ts';
import './reports.ts';
import './today.ts';
import './try.ts';
import './why.ts';

export interface Page {
  /** In the address: #/NAME/ID. */
  name: string;
  title: string;
  /** Where the menu has it; without one it is led to by links only. */
  menu?: 'ads' | 'system';
  /** The operations of the API that it cannot be without: with none of them, the page is absent. */
  operation?: string;
  /** It shows the node's own figures, so it is there without an API. */
  node?: boolean;
  /** It takes a change of the query itself; others begin anew. */
  takesQuery?: boolean;
  render: (route: Route) => TemplateResult;
}

const all: Page[] = [
  {name: 'today', title: 'Today', menu: 'ads', node: true, render: () => html`<page-today></page-today>`},
  {name: 'campaigns', title: 'Campaigns', menu: 'ads', operation: 'listCampaigns', render: route => html`<page-campaigns .status=${route.query.get('status') ?? ''} .search=${route.query.get('search') ?? ''}></page-campaigns>`},
  {name: 'campaign', title: 'Campaign', node: true, operation: 'getCampaign', render: route => html`<page-campaign .campaign=${route.id} .editing=${route.query.get('edit') ?? ''}></page-campaign>`},
  {name: 'ad-group', title: 'Ad group', operation: 'getAdGroup', render: route => html`<page-ad-group .group=${route.id} .focused=${route.query.get('edit') ?? ''}></page-ad-group>`},
  {name: 'why', title: 'Why', menu: 'ads', node: true, operation: 'why', render: route => html`<page-why .of=${route.id}></page-why>`},
  {name: 'placement', title: 'Placements', menu: 'ads', node: true, operation: 'listPlacements', render: route => html`<page-placement .placement=${route.id}></page-placement>`},
  {name: 'creative', title: 'Creatives', menu: 'ads', operation: 'getCreative', render: route => html`<page-creative .creative=${route.id} .group=${route.query.get('group') ?? ''} .type=${route.query.get('type') ?? ''}></page-creative>`},
  {name: 'experiments', title: 'Experiments', menu: 'ads', operation: 'listExperiments', render: route => html`<page-experiments .experiment=${route.id}></page-experiments>`},
  {name: 'reports', title: 'Reports', menu: 'ads', operation: 'report', takesQuery: true, render: route => html`<page-reports .query=${route.query}></page-reports>`},
  {name: 'try', title: 'Try', menu: 'ads', operation: 'decide', takesQuery: true, render: route => html`<page-try .query=${route.query}></page-try>`},
  {name: 'changes', title: 'Changes', menu: 'system', operation: 'audit', render: route => html`<page-changes .actor=${route.query.get('actor') ?? ''} .until=${route.query.get('before') ?? ''}></page-changes>`},
  {name: 'health', title: 'Health', menu: 'system', node: true, operation: 'health', render: () => html`<page-health></page-health>`},
];

/** Those that this user has. */
export const pages = (): Page[] => all.filter(page => session.value === null ? page.node : !page.operation || session.may(page.operation));

export const pageOf = (route: Route): Page | undefined => pages().find(page => page.name === route.name);
