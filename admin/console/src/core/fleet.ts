// The nodes of a fleet, and which of them serve what was saved.
import {api} from './http.ts';
import {live} from './live.ts';
import {poll, type Poll} from './poll.ts';
import {session} from './session.ts';

export interface FleetNode {
  node: number;
  name: string;
  version: string;
  /** Of its own counting: it rises with each catalog that the node publishes. */
  generation: string;
  exactness: string;
  state: 'active' | 'silent' | 'forgotten';
  silent_seconds: number;
  limits: number;
}

export interface SharedLimit {
  kind: string;
  id: number;
  name: string;
  day: string | null;
  unit: 'micro_cents' | 'count';
  limit: number;
  used: number;
  held: number;
  stranded: number;
  free: number;
}

export interface Fleet {
  nodes: FleetNode[];
  limits: SharedLimit[];
}

export const fleet = (): Poll<Fleet> => poll<Fleet>('PostgreSQL', 'api/fleet', 5000);

const active = async (): Promise<FleetNode[]> => (await api<Fleet>('GET', '/fleet')).value.nodes.filter(({state}) => state === 'active');

/** What each node serves, to be taken before something is saved. */
export interface Serving {
  generation: number | undefined;
  nodes: Map<number, string>;
}

export const serving = async (): Promise<Serving> => {
  const nodes = session.may('fleet') ? await active().catch(() => []) : [];
  return {generation: live.value?.generation, nodes: new Map(nodes.map(({node, generation}) => [node, generation]))};
};

/** The active nodes that serve the same catalog as before. */
export const behind = async ({nodes}: Serving): Promise<FleetNode[]> => (await active()).filter(({node, generation}) => nodes.get(node) === generation);
