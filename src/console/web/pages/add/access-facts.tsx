import { generate } from 'lean-qr';
import { Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Access } from '../../api/devices.ts';
import { CopyText } from '../../parts/copy.tsx';
import { t } from '../../text/t.ts';
import { hintOf, isHttp, qrText, type SnippetName, snippetsFor, targetOf } from './snippets.ts';

const hidden = '•'.repeat(12);

type FactsProps = { access: Access; isShown: boolean; onShow: (isShown: boolean) => void };

/** How a device signs in; its password is hidden behind a button. */
export function AccessFacts({ access, isShown, onShow }: FactsProps) {
  const { host, port, protocol, deviceAuthUuid: uuid, deviceAuthToken: token } = access;
  const overHttp = isHttp(access);
  return (
    <>
      <div class="connect-access">
        <dl class="facts">
          {overHttp ? (
            <Fact label={t('connect.address')} value={targetOf(access)} />
          ) : (
            <>
              <Fact label={t('connect.host')} value={host} />
              <Fact label={t('connect.port')} value={`${port} (${protocol})`} />
            </>
          )}
          <Fact label={t('connect.user')} value={uuid} />
          <Fact label={t('signIn.password')} value={isShown ? token : hidden} />
          {!overHttp && <Fact label={t('connect.topic')} value={targetOf(access)} />}
        </dl>
        {isShown && <Qr text={qrText(access)} label={t('connect.qr')} />}
      </div>
      <p class="connect-reveal">
        <button
          type="button"
          class="button"
          aria-expanded={isShown}
          onClick={() => onShow(!isShown)}
        >
          {t(isShown ? 'signIn.hidePassword' : 'signIn.showPassword')}
        </button>
        <span class="fine">{t('connect.tokenHint')}</span>
      </p>
    </>
  );
}

function Fact({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{withBreaks(value)}</dd>
    </div>
  );
}

/** Lets a long path break after its slashes. */
function withBreaks(path: string) {
  const [first, ...others] = path.split(/(?<=\w\/)/);
  return [
    first,
    ...others.map((part) => (
      <Fragment key={part}>
        <wbr />
        {part}
      </Fragment>
    )),
  ];
}

/** Code that sends a first message, in a chosen language. It is copied with the password even while that is hidden. */
export function Snippets({ access, message, isShown }: SnippetsProps) {
  const snippets = snippetsFor(access);
  const names = Object.keys(snippets) as SnippetName[];
  const [chosen, setChosen] = useState(names[0]);
  const write = chosen && snippets[chosen];
  if (!write) return null;
  return (
    <>
      <div class="choices" role="group" aria-label={t('snippet.label')}>
        {names.map((name) => (
          <button
            key={name}
            type="button"
            class="range"
            aria-pressed={name === chosen}
            onClick={() => setChosen(name)}
          >
            {t(`snippet.${name}`)}
          </button>
        ))}
      </div>
      <p class="fine">{t(hintOf(access, chosen))}</p>
      <CopyText
        key={chosen}
        label={t(`snippet.${chosen}`)}
        text={write(isShown ? access : { ...access, deviceAuthToken: hidden }, message)}
        copied={write(access, message)}
      />
    </>
  );
}

type SnippetsProps = { access: Access; message: string; isShown: boolean };

/** A text as a QR code, with the quiet zone that readers need. */
function Qr({ text, label }: { text: string; label: string }) {
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
