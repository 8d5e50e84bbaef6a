// What leaves the page: text to the clipboard, files to the disk.

export function toast(text) {
  const box = document.getElementById("toast");
  box.textContent = text;
  box.classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => box.classList.remove("shown"), 1800);
}

export async function copyText(text, done) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // No clipboard outside a secure context (a remote host without TLS): the old way still works.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(done);
}

export function download(name, url) {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  if (url.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(url), 10000);
}
