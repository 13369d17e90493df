// Who uses the page, and whether there is an API at all.
import {api, Refused} from './http.ts';
import {Store} from './store.ts';

export interface Me {
  user: string;
  role: 'viewer' | 'operator' | 'manager' | 'admin' | 'advertiser';
  advertiser: string | null;
  operations: string[];
}

const retryAfter = 5000;

class Session extends Store<Me | null> {
  constructor() {
    super('api/me');
  }

  /** Whether PostgreSQL's campaigns are there: without it the page shows what the node knows. */
  get managed(): boolean {
    return Boolean(this.value);
  }

  /** Whether an operation of the API is there for this user: may('updateCampaign'). */
  may(operation: string): boolean {
    return this.value?.operations.includes(operation) ?? false;
  }

  /** Whether the node's own figures are for this user: an advertiser's are in reports. */
  get seesNode(): boolean {
    return this.value === null || (this.value !== undefined && this.value.role !== 'advertiser');
  }

  protected override begin(): void {
    void this.ask();
  }

  private async ask(): Promise<void> {
    try {
      this.set((await api<Me>('GET', '/me')).value);
    } catch (error) {
      // No location: the console of a node without PostgreSQL.
      if (error instanceof Refused && (error.status === 404 || error.status === 405)) {
        this.set(null);
      } else {
        // While the API is away, what the node knows is there: nginx decides who may see that.
        if (error instanceof Refused && (error.status === 0 || error.status >= 500)) {
          this.value ??= null;
        }
        this.fail(error);
        window.setTimeout(() => void this.ask(), retryAfter);
      }
    }
  }
}

export const session = new Session();
