package strongbox

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
)

// fixture returns a strongbox with a secret in it.
func fixture(t *testing.T) (dir string, b *Box, sealed string) {
	t.Helper()
	dir = t.TempDir()
	b = Open(Options{Dir: dir, Hash: cheap})
	return dir, b, sealedBy(t, b)
}

// cheap is a cost for tests.
var cheap = Hash{Memory: 64, Time: 1, Threads: 1}

const swordfish, about = "swordfish", "a test"

func sealedBy(t *testing.T, b *Box) string {
	t.Helper()
	sealed, err := b.Seal([]byte(swordfish), about)
	if err != nil || strings.Contains(sealed, swordfish) {
		t.Fatal(sealed, err)
	}
	return sealed
}

// opens checks that a strongbox is open and has the key to some texts.
func opens(t *testing.T, b *Box, sealed ...string) {
	t.Helper()
	if err := b.Sealed(); err != nil {
		t.Fatal(err)
	}
	for _, text := range sealed {
		if secret, err := b.Open(text, about); err != nil || string(secret) != swordfish {
			t.Fatalf("opened is %q, %v", secret, err)
		}
	}
}

// TestBox checks that a secret is opened by the strongbox that sealed it alone, and for its
// purpose alone.
func TestBox(t *testing.T) {
	t.Parallel()
	dir, b, sealed := fixture(t)
	opens(t, b, sealed)
	opens(t, Open(Options{Dir: dir}), sealed)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file.Name(), info.Mode(), err)
		}
	}
	_, other, _ := fixture(t)
	for name, open := range map[string]func() ([]byte, error){
		"another purpose":   func() ([]byte, error) { return b.Open(sealed, "b") },
		"another strongbox": func() ([]byte, error) { return other.Open(sealed, about) },
		"damaged":           func() ([]byte, error) { return b.Open(sealed[:len(sealed)-6]+"AAAA"+sealed[len(sealed)-2:], about) },
		"cut":               func() ([]byte, error) { return b.Open(sealed[:24], about) },
		"another key":       func() ([]byte, error) { return b.Open("0"+sealed, about) },
		"no base64":         func() ([]byte, error) { return b.Open("?", about) },
		"nothing":           func() ([]byte, error) { return b.Open("", about) },
	} {
		if secret, err := open(); !errors.Is(err, ErrNotOurs) {
			t.Errorf("%s: %q, %v", name, secret, err)
		}
	}
}

// TestEmpty checks that a site without secrets has no strongbox, and is not sealed.
func TestEmpty(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "credentials")
	b := Open(Options{Dir: dir})
	opens(t, b)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || Exists(dir) || b.Way() != "" {
		t.Error("there is a strongbox", err)
	}
	if err := b.Rotate(nil); err == nil || !strings.Contains(err.Error(), "nothing was sealed yet") {
		t.Error(err)
	}
}

// TestFirst makes a strongbox, killed at any write of it: the next secret makes it, and no
// key file is left over.
func TestFirst(t *testing.T) {
	t.Parallel()
	for _, at := range append(writes()[2:], "") { // No link: the key file is in its folder.
		dir := t.TempDir()
		killed(t, at, func(kill func(string)) { _, _ = Open(Options{Dir: dir, At: kill}).Seal([]byte(swordfish), about) })
		b := Open(Options{Dir: dir})
		sealed := sealedBy(t, b)
		if err := b.Rotate(nil); err != nil {
			t.Fatal(err)
		}
		if fresh := sealedBy(t, b); !b.Stale(sealed) || b.Stale(fresh) {
			t.Error("what the first key has sealed is not stale, or what the new one has is")
		}
		opens(t, Open(Options{Dir: dir}), sealed)
		if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
			t.Errorf("killed %s: the files are %v, %v", at, files, err)
		}
	}
}

func isSealed(t *testing.T, b *Box, why string) {
	t.Helper()
	err := b.Sealed()
	if _, ok := errors.AsType[*SealedError](err); !ok || !strings.Contains(err.Error(), why) || !strings.HasPrefix(err.Error(), "strongbox sealed: ") {
		t.Fatalf("it is %v, and should be sealed: %s", err, why)
	}
	// Whoever asks is told that it is sealed: a 503 of the API goes by that.
	var sealed *SealedError
	if _, err := b.Seal([]byte("x"), about); !errors.As(err, &sealed) {
		t.Errorf("a sealed strongbox seals: %v", err)
	}
	if _, err := b.Open("x", about); !errors.As(err, &sealed) {
		t.Errorf("a sealed strongbox opens: %v", err)
	}
}

// kill ends what a test does at a label.
type kill struct{}

// killed calls do, which is killed at a label; empty means that it is not.
func killed(t *testing.T, label string, do func(at func(string))) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil && r != (kill{}) {
			panic(r)
		}
	}()
	do(func(at string) {
		if at == label {
			panic(kill{})
		}
	})
	if label != "" {
		t.Errorf("there was no write %s", label)
	}
}

func writes() (all []string) {
	for _, label := range []string{"key link", "key file", "strongbox", "old keys"} {
		all = append(all, "before "+label, "after "+label)
	}
	return all
}

// keeper is one way to open a strongbox, with the secret.
type keeper struct {
	target Target
	// elsewhere is the folder of systemd's credentials.
	elsewhere string
}

func keepers(t *testing.T) map[string]keeper {
	t.Helper()
	elsewhere := t.TempDir()
	random := bytes.Repeat([]byte("k"), 40)
	write(t, filepath.Join(elsewhere, "osupgrade-strongbox"), random)
	write(t, filepath.Join(elsewhere, "own.key"), bytes.Repeat([]byte("o"), 32))
	return map[string]keeper{
		"its own key file": {target: Target{Way: KeyFile}},
		"a new key file":   {target: Target{Way: KeyFile, File: filepath.Join(elsewhere, "new.key")}},
		"a key file":       {target: Target{Way: KeyFile, File: filepath.Join(elsewhere, "own.key"), Secret: bytes.Repeat([]byte("o"), 32)}},
		"a credential":     {target: Target{Way: Credential, Name: "osupgrade-strongbox", Secret: random}, elsewhere: elsewhere},
		"a passphrase":     {target: Target{Way: Passphrase, Secret: []byte("correct horse battery staple")}},
	}
}

// open opens the strongbox of a folder in this way.
func (k keeper) open(dir string, at func(string)) (*Box, error) {
	b := Open(Options{Dir: dir, Credentials: k.elsewhere, At: at, Hash: cheap})
	if k.target.Way == Passphrase {
		return b, b.Unseal(k.target.Secret)
	}
	return b, b.Sealed()
}

// TestRewrap changes each way into each, and back, killed at each write: the old secret or the
// new one opens the strongbox, and no secret is lost.
func TestRewrap(t *testing.T) {
	t.Parallel()
	for from := range keepers(t) {
		for to := range keepers(t) {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				all := keepers(t)
				dir, b, sealed := fixture(t)
				if err := b.Rewrap(all[from].target); err != nil {
					t.Fatal(err)
				}
				for _, label := range append(writes(), "") {
					rewrapKilled(t, dir, label, all[from], all[to], sealed)
				}
			})
		}
	}
}

func rewrapKilled(t *testing.T, dir, label string, from, to keeper, sealed string) {
	t.Helper()
	_, err := os.Stat(to.target.File)
	makes := to.target.Way == KeyFile && err != nil
	if strings.HasSuffix(label, "key file") && !makes || strings.HasSuffix(label, "key link") && (!makes || to.target.File == "") {
		return
	}
	killed(t, label, func(at func(string)) {
		b, err := from.open(dir, at)
		if err == nil {
			err = b.Rewrap(to.target)
		}
		if err != nil {
			t.Fatalf("killed %s: %v", label, err)
		}
		opens(t, b, sealed)
	})
	b, err := to.open(dir, nil)
	if err != nil {
		if label == "" || label == "after strongbox" || strings.HasSuffix(label, "old keys") {
			t.Fatalf("killed %s: the new way does not open it: %v", label, err)
		}
		if b, err = from.open(dir, nil); err != nil {
			t.Fatalf("killed %s: neither way opens it: %v", label, err)
		}
	}
	opens(t, b, sealed, sealedBy(t, b))
	onlyOwnKey(t, "killed "+label, dir, b)
	if _, err := os.Stat(to.target.File); makes && err == nil && b.Opener() != "the key file "+to.target.File {
		t.Errorf("killed %s: %s is left, and opens nothing", label, to.target.File)
	}
	if err := b.Rewrap(from.target); err != nil { // And back.
		t.Fatal(err)
	}
	onlyOwnKey(t, "killed "+label+", and back", dir, b)
}

// onlyOwnKey checks that of the key files in its folder a strongbox has none but the one that
// opens it.
func onlyOwnKey(t *testing.T, what, dir string, b *Box) {
	t.Helper()
	kept, err := b.read()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	if kept.Way == KeyFile && !filepath.IsAbs(kept.File) {
		want = []string{kept.keyPath(dir)}
	}
	if own, err := filepath.Glob(filepath.Join(dir, ownKeys)); err != nil || !slices.Equal(own, want) {
		t.Errorf("%s: the key files are %v and should be %v, %v", what, own, want, err)
	}
}

// TestKeyInTheFolder checks that a key file which somebody has put into the folder of the
// strongbox, or names by its path there, is not taken for an old one.
func TestKeyInTheFolder(t *testing.T) {
	t.Parallel()
	dir, b, sealed := fixture(t)
	own, err := filepath.Glob(filepath.Join(dir, ownKeys))
	if err != nil || len(own) != 1 {
		t.Fatal(own, err)
	}
	for _, path := range []string{own[0], filepath.Join(dir, "strongbox-mine.key"), filepath.Join(dir, "..", filepath.Base(dir), "strongbox-yours.key")} {
		if err := b.Rewrap(Target{Way: KeyFile, File: path}); err != nil {
			t.Fatal(err)
		}
		b = Open(Options{Dir: dir})
		opens(t, b, sealed)
	}
}

// TestLinkElsewhere checks what becomes of the link to a key file that a killed process was
// about to make: it stays while its folder is not there, and nothing else is removed by it.
func TestLinkElsewhere(t *testing.T) {
	t.Parallel()
	disk := filepath.Join(t.TempDir(), "disk")
	dir, _, _ := fixture(t)
	path := filepath.Join(disk, "new.key")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	killed(t, "after key file", func(at func(string)) {
		_ = Open(Options{Dir: dir, At: at}).Rewrap(Target{Way: KeyFile, File: path})
	})
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(disk, disk+".away"); err != nil {
		t.Fatal(err)
	}
	links := func() int {
		t.Helper()
		_ = Open(Options{Dir: dir})
		own, err := filepath.Glob(filepath.Join(dir, ownKeys))
		if err != nil {
			t.Fatal(err)
		}
		return len(own) - 1
	}
	if links() != 1 {
		t.Error("the link is gone while the disk is away")
	}
	if err := os.Rename(disk+".away", disk); err != nil {
		t.Fatal(err)
	}
	write(t, path, bytes.Repeat([]byte("o"), 32)) // Somebody has made another one there.
	if left := links(); left != 0 {
		t.Errorf("%d links are left", left)
	}
	if now, err := os.ReadFile(path); err != nil || bytes.Equal(now, made) {
		t.Errorf("the key file of somebody else is gone: %v", err)
	}
}

// TestKeyWithoutStrongbox checks that a key file stays while its strongbox is missing: who puts
// that back needs it.
func TestKeyWithoutStrongbox(t *testing.T) {
	t.Parallel()
	dir, b, sealed := fixture(t)
	aside := b.file() + ".aside"
	for _, body := range []string{"", "damaged"} {
		if err := os.Rename(b.file(), aside); err != nil {
			t.Fatal(err)
		}
		if body != "" {
			write(t, b.file(), []byte(body))
		}
		_ = Open(Options{Dir: dir})
		if err := os.Rename(aside, b.file()); err != nil {
			t.Fatal(err)
		}
		opens(t, Open(Options{Dir: dir}), sealed)
	}
}

// TestHistories plays random histories of rewraps and rotations, each killed anywhere: all
// that was ever sealed stays readable.
func TestHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		all, names := keepers(t), []string{"its own key file", "a new key file", "a key file", "a credential"}
		dir, _, first := fixture(t)
		sealed, now := []string{first}, "its own key file"
		for range 12 {
			to := names[random.IntN(len(names))]
			labels := append(writes(), "", "")
			label, rotate := labels[random.IntN(len(labels))], random.IntN(2) == 0
			func() {
				defer func() { _ = recover() }()
				b, err := all[now].open(dir, func(at string) {
					if at == label {
						panic(kill{})
					}
				})
				if err == nil && rotate {
					err = b.Rotate(nil)
				} else if err == nil {
					err = b.Rewrap(all[to].target)
				}
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}()
			b, err := all[now].open(dir, nil)
			if err != nil {
				now = to
				if b, err = all[now].open(dir, nil); err != nil {
					t.Fatalf("seed %d: neither %s nor the way before opens it: %v", seed, to, err)
				}
			}
			if way := b.Way(); way == Credential {
				now = "a credential"
			}
			sealed = append(sealed, sealedBy(t, b))
			opens(t, b, sealed...)
		}
	}
}

// TestRotate makes a new data key in each way: it seals from then on, what the old one has
// sealed stays readable and is told as stale, and what opens the strongbox stays the same.
func TestRotate(t *testing.T) {
	t.Parallel()
	for way := range keepers(t) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			k := keepers(t)[way]
			dir, b, _ := fixture(t)
			if err := b.Rewrap(k.target); err != nil {
				t.Fatal(err)
			}
			old, kept := sealedBy(t, b), func() (content, string) {
				now, err := b.read()
				if err != nil {
					t.Fatal(err)
				}
				key, _ := os.ReadFile(now.keyPath(dir)) // There is none with a passphrase.
				return now, string(key)
			}
			before, key := kept()
			secret := k.target.Secret
			if k.target.Way == KeyFile {
				secret = nil
			}
			if k.target.Way == Credential {
				b = Open(Options{Dir: dir, Credentials: k.elsewhere})
				secret = nil
			}
			if err := b.Rotate(secret); err != nil {
				t.Fatal(err)
			}
			after, same := kept()
			if after.Way != before.Way || after.File != before.File || after.Name != before.Name || same != key {
				t.Errorf("it was opened by %+v, and is by %+v", before, after)
			}
			next := sealedBy(t, b)
			if !b.Stale(old) || b.Stale(next) {
				t.Errorf("stale are %t and %t", b.Stale(old), b.Stale(next))
			}
			again, err := k.open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			opens(t, again, old, next)
		})
	}
}

// TestSalt checks that no two passphrases become the same key, not even equal ones.
func TestSalt(t *testing.T) {
	t.Parallel()
	salts := map[string]bool{string(make([]byte, saltBytes)): true}
	for range 3 {
		_, b, _ := fixture(t)
		if err := b.Rewrap(keepers(t)["a passphrase"].target); err != nil {
			t.Fatal(err)
		}
		kept, err := b.read()
		if err != nil || salts[string(kept.Hash.Salt)] {
			t.Fatalf("the salt %x is there twice, or none: %v", kept.Hash.Salt, err)
		}
		salts[string(kept.Hash.Salt)] = true
	}
}

// TestSealed checks what a strongbox says that it cannot open, that it overwrites nothing,
// and that it opens once it can.
func TestSealed(t *testing.T) {
	t.Parallel()
	t.Run("passphrase", func(t *testing.T) {
		t.Parallel()
		dir, b, sealed := fixture(t)
		k := keepers(t)["a passphrase"]
		if err := b.Rewrap(k.target); err != nil {
			t.Fatal(err)
		}
		b = Open(Options{Dir: dir})
		isSealed(t, b, "it is opened by a passphrase; run osupgrade-agent unseal")
		for _, wrong := range []string{"", "correct horse battery stapl", "correct horse battery staple\n"} {
			if err := b.Unseal([]byte(wrong)); !errors.Is(err, ErrWrong) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		isSealed(t, b, "passphrase")
		if err := b.Rewrap(Target{Way: KeyFile}); !errors.Is(err, errChanging) {
			t.Errorf("a sealed strongbox was changed: %v", err)
		}
		select {
		case <-b.Opened():
			t.Error("it says that it is open")
		default:
		}
		if err := b.Unseal(k.target.Secret); err != nil {
			t.Fatal(err)
		}
		<-b.Opened()
		opens(t, b, sealed)
		if err := b.Unseal([]byte("wrong")); err != nil {
			t.Errorf("one that is open: %v", err)
		}
	})
	t.Run("credential", func(t *testing.T) {
		t.Parallel()
		dir, b, sealed := fixture(t)
		k := keepers(t)["a credential"]
		if err := b.Rewrap(k.target); err != nil {
			t.Fatal(err)
		}
		isSealed(t, Open(Options{Dir: dir}), "start the site by its unit, with LoadCredentialEncrypted=osupgrade-strongbox")
		isSealed(t, Open(Options{Dir: dir, Credentials: t.TempDir()}), "cannot be read")
		opens(t, Open(Options{Dir: dir, Credentials: k.elsewhere}), sealed)
	})
}

// TestSealedKeyFile checks the same of one that a key file opens, which is missing, damaged or
// another, and is put back.
func TestSealedKeyFile(t *testing.T) {
	t.Parallel()
	dir, _, sealed := fixture(t)
	keys, err := filepath.Glob(filepath.Join(dir, ownKeys))
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	key, err := os.ReadFile(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(keys[0]); err != nil {
		t.Fatal(err)
	}
	b := Open(Options{Dir: dir})
	isSealed(t, b, "no such file or directory); put "+keys[0]+" back")
	write(t, keys[0], bytes.Repeat([]byte{1}, 32))
	if err := b.Retry(); err == nil {
		t.Error("another key opens it")
	}
	isSealed(t, b, "the key file "+keys[0]+": this is not the one that opens the strongbox")
	write(t, keys[0], []byte("short"))
	_ = b.Retry()
	isSealed(t, b, "is no key file: it must have 32 to 4096 bytes")
	if now, err := os.ReadFile(filepath.Join(dir, FileName)); err != nil || !bytes.Equal(now, kept) {
		t.Error("the strongbox was overwritten", err)
	}
	if b.Missing() != "" {
		t.Error("it says that the key file is missing, which is a wrong one")
	}
	write(t, keys[0], key)
	if err := b.Retry(); err != nil {
		t.Fatal(err)
	}
	opens(t, b, sealed)
	if err := os.Remove(keys[0]); err != nil {
		t.Fatal(err)
	}
	b = Open(Options{Dir: dir})
	if name := b.Missing(); name != filepath.Base(keys[0]) {
		t.Errorf("missing is %q", name)
	}
	if err := b.PutBack(bytes.Repeat([]byte{1}, 32)); !errors.Is(err, ErrWrong) {
		t.Errorf("another key is put back: %v", err)
	}
	if err := b.PutBack(key); err != nil || b.Missing() != "" {
		t.Error(err)
	}
	opens(t, b, sealed)
}

// TestDamage changes each byte of the file, and cuts it anywhere: the strongbox is sealed and
// says that the file is damaged, or of another format, or opens as before; the file stays.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir, _, sealed := fixture(t)
	path := filepath.Join(dir, FileName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, body []byte) {
		write(t, path, body)
		b := Open(Options{Dir: dir})
		if err := b.Sealed(); err == nil {
			if secret, err := b.Open(sealed, about); err != nil || string(secret) != swordfish {
				t.Errorf("%s: it is open and opens %q, %v", what, secret, err)
			}
		} else if text := err.Error(); !strings.Contains(text, "is damaged") && !strings.Contains(text, "written by format") && !strings.Contains(text, "key file") && !strings.Contains(text, "not the one") {
			t.Errorf("%s: %v", what, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, body) {
			t.Errorf("%s: the file was overwritten, %v", what, err)
		}
	}
	for i := range whole {
		for _, bit := range []byte{1, 0x20, 0x80} {
			changed := bytes.Clone(whole)
			changed[i] ^= bit
			try(fmt.Sprintf("byte %d ^ %#x", i, bit), changed)
		}
		try(fmt.Sprintf("cut at %d", i), whole[:i])
	}
	for text, why := range map[string]string{
		`{"format":9,"way":"key-file"}`:                                                                               "written by format 9, this version reads 1",
		`{"format":1,"way":"oracle","id":"","keys":""}`:                                                               `way "oracle" is not known`,
		`{"format":1,"way":"key-file","id":"","keys":""}`:                                                             "file is missing",
		`{"format":1,"way":"credential","name":"../x","id":"","keys":""}`:                                             `name "../x" is not that of a credential`,
		`{"format":1,"way":"passphrase","id":"","keys":""}`:                                                           "hash is missing",
		`{"format":1,"way":"passphrase","hash":{"salt":"AAAAAAAAAAAAAAAA","memory":4000000000,"time":1,"threads":1}}`: "hash is out of bounds",
	} {
		write(t, path, []byte(text))
		isSealed(t, Open(Options{Dir: dir}), why)
	}
	write(t, path, whole)
	opens(t, Open(Options{Dir: dir}), sealed)
}

// TestTargets checks what a strongbox cannot be opened by.
func TestTargets(t *testing.T) {
	t.Parallel()
	_, b, _ := fixture(t)
	for why, target := range map[string]Target{
		"the passphrase is too short; use at least 12 characters": {Way: Passphrase, Secret: []byte("eleven char")},
		"is no absolute path":                {Way: KeyFile, File: "key"},
		"cannot be the name of a credential": {Way: Credential, Name: "a/b", Secret: bytes.Repeat([]byte{1}, 32)},
		"it must have 32 to 4096 bytes":      {Way: Credential, Name: "a", Secret: []byte("short")},
		`way "oracle" is not known`:          {Way: "oracle"},
		"no such file or directory":          {Way: KeyFile, File: filepath.Join(t.TempDir(), "none", "key")},
	} {
		if err := b.Rewrap(target); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// TestReset gives up a strongbox: its files stay aside, and the next secret makes a new one.
func TestReset(t *testing.T) {
	t.Parallel()
	dir, _, sealed := fixture(t)
	aside, err := Reset(dir, time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC))
	if err != nil || len(aside) != 2 || !strings.HasSuffix(aside[0], ".lost-20261123T010203Z") {
		t.Fatal(aside, err)
	}
	b := Open(Options{Dir: dir})
	if _, err := b.Open(sealed, about); !errors.Is(err, ErrNotOurs) {
		t.Error(err)
	}
	opens(t, b, sealedBy(t, b))
	for _, path := range aside { // They can be put back.
		if err := os.Rename(path, strings.TrimSuffix(path, ".lost-20261123T010203Z")); err != nil {
			t.Fatal(err)
		}
	}
	opens(t, Open(Options{Dir: dir}), sealed)
	if _, err := Reset(t.TempDir(), time.Now()); err == nil || !strings.Contains(err.Error(), "has no strongbox") {
		t.Error(err)
	}
}

// TestFormat opens a strongbox of format 1, and what that has sealed.
func TestFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, FileName), formattest.Read(t, "testdata/format1/strongbox.json"))
	b := Open(Options{Dir: dir})
	if err := b.Unseal([]byte("correct horse battery staple")); err != nil {
		t.Fatal(err)
	}
	opens(t, b, strings.TrimSpace(string(formattest.Read(t, "testdata/format1/secret.txt"))))
}

func write(t *testing.T, path string, body []byte) {
	t.Helper()
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

// FuzzFiles checks that a file of a strongbox and a text that it has sealed are read as they
// were written, or refused: nobody opens one with another key.
func FuzzFiles(f *testing.F) {
	dir := f.TempDir()
	box := Open(Options{Dir: dir})
	text, err := box.Seal([]byte("swordfish"), "a test")
	if err != nil {
		f.Fatal(err)
	}
	body, err := os.ReadFile(box.file())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body, text)
	f.Add([]byte(`{"format":1,"way":"passphrase","hash":{"salt":"AAAA","memory":64,"time":1,"threads":1},"id":"x","keys":"AAAA"}`), text[:len(text)/2])
	f.Add(bytes.Replace(body, []byte(`"id":"`), []byte(`"id":"0`), 1), strings.ToUpper(text))
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		if secret, err := box.Open(text, "a test"); err == nil && string(secret) != "swordfish" {
			t.Errorf("%s is opened as %q", text, secret)
		}
		if secret, err := box.Open(text, "another"); err == nil {
			t.Errorf("%s is opened for another purpose: %q", text, secret)
		}
		changed := t.TempDir()
		if err := os.WriteFile(filepath.Join(changed, FileName), body, 0o600); err != nil {
			t.Fatal(err)
		}
		other := Open(Options{Dir: changed})
		if other.Sealed() == nil {
			t.Errorf("without its key file, the strongbox %s is open", body)
		}
		// What a hash costs is bounded, and takes the time of this test all the same.
		if kept, err := other.read(); err == nil && (kept.Hash == nil || kept.Hash.Memory <= 256 && kept.Hash.Time <= 2) {
			_, _ = other.unwrap(kept, []byte("a passphrase"))
		}
	})
}
