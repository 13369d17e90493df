// An advertiser's page: reports a conversion with the id that the click brought.
const brands = {
  brinewick: 'Brinewick Coffee', noctarail: 'Noctarail', velomere: 'Velomere', tidewatch: 'Tidewatch',
  fjordlight: 'Fjordlight Ferries', quillhaven: 'Quillhaven Books', house: 'The Harbour Post, on paper',
};
const query = new URLSearchParams(location.search);
const byId = id => document.getElementById(id);
byId('brand').textContent = brands[query.get('brand')] ?? 'The advertiser';

const status = async () => (await fetch('/console/status', { cache: 'no-store' })).json();

byId('buy').disabled = !query.get('click');
byId('buy').addEventListener('click', async () => {
  const before = await status();
  const { status: code } = await fetch('/spot/conversion?t=' + encodeURIComponent(query.get('click')), { method: 'POST' });
  const after = await status();
  byId('outcome').textContent = code >= 400 ? `Refused with ${code}.`
    : after.events.duplicate > before.events.duplicate ? `Answered with ${code}, and not counted again.`
      : 'Counted: one conversion.';
});
