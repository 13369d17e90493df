// Waits for a consent manager, for the browser's cookies tell the server what it has decided.

type Tcf = (command: string, version: number, callback: (data: {eventStatus?: string; cmpStatus?: string}, ok: boolean) => void) => void;
type Gpp = (command: string, callback: (data: {eventName?: string; pingData?: {signalStatus?: string}}, ok: boolean) => void) => void;

const step = 50;  // milliseconds between two looks for a manager that is not there yet

/** Resolves when a manager has an answer, or after the limit: "wait" (3 seconds) or "wait SECONDS". */
export const wait = (limit: string): Promise<void> => new Promise(done => {
  let timer: ReturnType<typeof setTimeout>;
  const end = setTimeout(() => finish(), (parseFloat(limit.slice(4)) || 3) * 1000);
  const finish = (): void => {
    clearTimeout(end);
    clearTimeout(timer);
    done();
  };
  const look = (): void => {
    const {__tcfapi: tcf, __gpp: gpp} = window as {__tcfapi?: Tcf; __gpp?: Gpp};
    if (tcf) {
      tcf('addEventListener', 2, (data, ok) => {
        if (ok && (data.eventStatus === 'tcloaded' || data.eventStatus === 'useractioncomplete')) {
          finish();
        }
      });
    }
    if (gpp) {
      const ready = (status?: string): void => {
        if (status === 'ready') {
          finish();
        }
      };
      gpp('ping', data => ready((data as {signalStatus?: string}).signalStatus));
      gpp('addEventListener', data => ready(data.pingData?.signalStatus));
    }
    if (!tcf && !gpp) {
      timer = setTimeout(look, step);
    }
  };
  look();
});
