// A value that views follow.

export class Store<T> {
  value: T | undefined;
  /** Why there is no newer value. */
  error: Error | undefined;
  /** When the value was received, in ms. */
  at = 0;
  private readonly followers = new Set<() => void>();

  constructor(readonly name: string) {}

  set(value: T): void {
    this.value = value;
    this.error = undefined;
    this.at = Date.now();
    this.tell();
  }

  fail(error: unknown): void {
    this.error = error instanceof Error ? error : new Error(String(error));
    this.tell();
  }

  follow(follower: () => void): () => void {
    this.followers.add(follower);
    if (this.followers.size === 1) {
      this.begin();
    }
    return () => {
      if (this.followers.delete(follower) && this.followers.size === 0) {
        this.end();
      }
    };
  }

  protected get followed(): boolean {
    return this.followers.size > 0;
  }

  /** The first view follows it, the last one has stopped. */
  protected begin(): void {}
  protected end(): void {}

  protected tell(): void {
    this.followers.forEach(follower => follower());
  }
}
