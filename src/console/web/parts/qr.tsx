import { generate } from 'lean-qr';
import { useEffect, useRef } from 'preact/hooks';

/** A text as a QR code, with the quiet zone that readers need. */
export function Qr({ text, label }: { text: string; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    if (canvas.current)
      generate(text).toCanvas(canvas.current, { pad: 4, on: [0, 0, 0], off: [255, 255, 255] });
  }, [text]);
  return (
    <figure>
      <canvas ref={canvas} class="qr" aria-hidden="true" />
      <figcaption class="fine">{label}</figcaption>
    </figure>
  );
}
