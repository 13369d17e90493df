// Requests to the API, to ads_status, and what they are refused with. All addresses are relative to the page.

export interface Fault {
  object: string;
  path: string;
  message: string;
}

export interface FieldChange {
  field: string;
  before: unknown;
  after: unknown;
}

export interface Change {
  change: 'added' | 'changed' | 'archived';
  object: string;
  id: string | number;
  name: string;
  fields: FieldChange[];
}

/** What somebody changed in one go. */
export interface HistoryEdit {
  version: string;
  at: string;
  actor: string;
  changes: Change[];
}

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly faults: Fault[] = [],
    /** Of 412: the version to go on from, and what was changed meanwhile. */
    readonly version = '',
    readonly changes: HistoryEdit[] = [],
  ) {
    super(message);
  }
}

export interface Answer<T> {
  value: T;
  version: string;
}

export interface Options {
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  version?: string;
  signal?: AbortSignal;
}

export const withQuery = (path: string, query: Options['query'] = {}): string => {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '' && value !== false) {
      parameters.set(name, value === true ? '1' : String(value));
    }
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
};

const reason = (status: number): string => ({
  401: 'not logged in: reload the page',
  403: 'nginx refuses this for you',
  404: 'there is nothing at this address',
  413: 'too large for nginx: see client_max_body_size',
  502: 'nginx-ads api does not run',
  503: 'not available at the moment',
  504: 'nginx-ads api does not respond in time',
})[status] ?? `unexpected response with status ${status}`;

/** One exchange; throws Refused, also when nothing responds. */
export const request = async <T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> => {
  const headers: Record<string, string> = {Accept: 'application/json'};
  const file = options.body instanceof Blob;
  if (options.version) {
    headers['If-Match'] = options.version;
  }
  if (method !== 'GET') {
    headers['Content-Type'] = file ? 'application/octet-stream' : 'application/json';
  }
  const init: RequestInit = {method, headers, cache: 'no-store'};
  if (method !== 'GET') {
    init.body = file ? options.body as Blob : JSON.stringify(options.body ?? {});
  }
  if (options.signal) {
    init.signal = options.signal;
  }
  let response: Response;
  try {
    response = await fetch(withQuery(path, options.query), init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') {
      throw error;
    }
    throw new Refused(0, 'unreachable', 'nginx does not respond');
  }
  let value: unknown;
  try {
    value = JSON.parse(await response.text());
  } catch {
    value = undefined;
  }
  if (!response.ok || value === undefined) {
    const error = (value as {error?: {code: string; message: string; faults?: Fault[]; version?: string; changes?: HistoryEdit[]}} | undefined)?.error;
    throw error
      ? new Refused(response.status, error.code, error.message, error.faults, error.version, error.changes)
      : new Refused(response.status, 'http', reason(response.status));
  }
  return {value: value as T, version: response.headers.get('ETag') ?? ''};
};

/** The API: api('GET', '/campaigns/7'). */
export const api = <T>(method: string, path: string, options?: Options): Promise<Answer<T>> => request<T>(method, `api${path}`, options);
