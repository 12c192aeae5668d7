package credential

import (
	"errors"
	"os"
	"testing"
)

// TestFolder checks that what is put is there for who opens the folder later, in a file for
// each entry, and that nothing else in the folder is an entry.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/made"
	f, err := OpenFolder(dir)
	must(t, err)
	must(t, Put(f, "a", []byte("one")))
	if body, err := os.ReadFile(dir + "/a.json"); err != nil || string(body) != "one" {
		t.Errorf("its file has %q, %v", body, err)
	}
	// Neither an unfinished write nor anything else is an entry.
	must(t, errors.Join(os.WriteFile(dir+"/b.json.tmp", nil, 0o600), os.Mkdir(dir+"/c.json", 0o700)))
	if all, err := f.List(); err != nil || len(all) != 1 || all[0].Name != "a" {
		t.Errorf("it lists %v, %v", all, err)
	}
	again, err := OpenFolder(dir)
	must(t, err)
	if got, err := again.Get("a"); err != nil || string(got) != "one" {
		t.Errorf("it is %q, %v", got, err)
	}
	must(t, Remove(again, "a"))
	if _, err := os.Stat(dir + "/a.json"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of what was removed: %v", err)
	}
	must(t, Put(f, "a", []byte("two")))
	if _, err := OpenFolder(dir + "/a.json"); err == nil {
		t.Error("a file is taken for a folder")
	}
}
