// A minus before a word excludes it: options are searched for as they are written.
document.addEventListener("input", (event) => {
  const box = event.target;
  if (box.matches?.(".md-search__input")) {
    const words = box.value.replace(/(^|\s)-+/g, "$1");
    if (words !== box.value) box.value = words;
  }
}, true);
