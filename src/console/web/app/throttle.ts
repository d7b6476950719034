/** Runs at once, and then at most once every `ms`: a burst ends with one more run. */
export function throttle(run: () => void, ms: number): () => void {
  let isResting = false;
  let isAsked = false;
  const call = () => {
    if (isResting) {
      isAsked = true;
      return;
    }
    isResting = true;
    run();
    setTimeout(() => {
      isResting = false;
      if (isAsked) {
        isAsked = false;
        call();
      }
    }, ms);
  };
  return call;
}
