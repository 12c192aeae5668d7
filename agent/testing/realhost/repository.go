package realhost

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Fault is what is wrong with a repository.
type Fault int

const (
	// None is wrong: it is as it should be.
	None Fault = iota
	// Down refuses each request with 503, as a mirror that is out of order.
	Down
	// WrongKey is one that is signed with a key that nobody trusts.
	WrongKey
	// Expired has a Release whose Valid-Until is past.
	Expired
	// Damaged has packages that are not what its index says.
	Damaged
)

// Repository is a signed Debian repository on loopback, served by the test.
type Repository struct {
	t      testing.TB
	server *httptest.Server
	signer *openpgp.Entity

	mu    sync.Mutex
	files map[string][]byte
	debs  []Deb
	// suites are further releases, each with its folder.
	suites [][2]string
	fault  Fault
	// slow holds up each package until it is closed.
	slow  chan struct{}
	asked []string
	about Release
}

// Release says what a repository says of itself; apt selects packages by it.
type Release struct{ Origin, Label, Suite, Codename string }

// keys makes the keys of this process once: the good one and the wrong one.
var keys = sync.OnceValues(func() (good, wrong *openpgp.Entity) {
	entity := func(name string) *openpgp.Entity {
		// apt trusts RSA of 2048 bits in each release.
		e, err := openpgp.NewEntity(name, "", name+"@example.invalid", &packet.Config{RSABits: 2048})
		if err != nil {
			panic(err)
		}
		return e
	}
	return entity("good"), entity("wrong")
})

// NewRepository starts an empty repository.
func NewRepository(t testing.TB) *Repository {
	t.Helper()
	good, _ := keys()
	r := &Repository{t: t, signer: good, about: Release{Origin: "Appliance", Label: "Appliance", Suite: "stable", Codename: "stable"}}
	r.server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.Hold(false)
		r.server.CloseClientConnections()
		r.server.Close()
	})
	r.Publish()
	return r
}

// Address is where it listens, HOST:PORT of this machine.
func (r *Repository) Address() string { return r.server.Listener.Addr().String() }

// Publish replaces all packages of the repository.
func (r *Repository) Publish(debs ...Deb) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.debs = debs
	r.render()
}

// Add adds packages to those that are there, as a mirror does, which keeps the old ones.
func (r *Repository) Add(debs ...Deb) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.debs = append(r.debs, debs...)
	r.render()
}

// Describe sets what it says of itself.
func (r *Repository) Describe(about Release) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.about = about
	r.render()
}

// Break makes it faulty; None repairs it.
func (r *Repository) Break(fault Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
	r.render()
}

// Hold keeps back each package that is asked for from now on, until Hold(false).
func (r *Repository) Hold(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on && r.slow == nil {
		r.slow = make(chan struct{})
	} else if !on && r.slow != nil {
		close(r.slow)
		r.slow = nil
	}
}

// Asked returns the path of each request so far.
func (r *Repository) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.asked...)
}

// AddSuite adds a release of a distribution, as Debian lays it out: "deb ADDRESS suite
// main". Its packages are the archives of a folder with their index, as make images
// leaves them; without a folder there is none that
// a host has. It says that its origin is Debian.
func (r *Repository) AddSuite(suite, folder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suites = append(r.suites, [2]string{suite, folder})
	r.render()
}

// render makes the files anew. r.mu is held.
func (r *Repository) render() {
	files := map[string][]byte{}
	var packages strings.Builder
	for _, d := range r.debs {
		data := d.Build()
		name := "pool/" + d.file()
		fmt.Fprintf(&packages, "%sFilename: ./%s\nSize: %d\nMD5sum: %x\nSHA256: %x\n\n", d.control(), name, len(data), md5.Sum(data), sha256.Sum256(data)) //nolint:gosec // a field of the format
		if r.fault == Damaged {
			data = bytes.Repeat([]byte("?"), len(data))
		}
		files[name] = data
	}
	r.index(files, "", r.about, "", packages.String())
	for _, suite := range r.suites {
		// apt forgets an index without a package, and with it the suite.
		index := Deb{Name: "nothing", Version: "1"}.control() + "Filename: nothing\nSize: 1\nSHA256: " + strings.Repeat("0", 64) + "\n"
		if suite[1] != "" {
			text, err := os.ReadFile(filepath.Join(suite[1], "Packages"))
			if err != nil {
				r.t.Errorf("cannot read the index of %s: %v", suite[0], err)
			}
			index = strings.ReplaceAll(string(text), "\nFilename: ./", "\nFilename: "+folders+suite[0]+"/")
		}
		r.index(files, "dists/"+suite[0]+"/", Release{"Debian", "Debian", suite[0], suite[0]}, component, index)
	}
	r.files = files
}

// component is the place of the index of the component main.
const component = "main/binary-" + runtime.GOARCH + "/"

// folders is where the folders of suites are.
const folders = "folders/"

// index adds an index of packages at a place below dir, and the signed Release of dir.
func (r *Repository) index(files map[string][]byte, dir string, about Release, place, packages string) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(packages))
	_ = w.Close()
	indexes := map[string][]byte{}
	// Beside a Release they are the component main, too, for who serves it below dists.
	for _, at := range []string{place, component} {
		indexes[at+"Packages"], indexes[at+"Packages.gz"] = []byte(packages), packed.Bytes()
	}
	var release strings.Builder
	// The clock of a virtual machine may be behind.
	date := time.Now().Add(-time.Minute).UTC()
	fmt.Fprintf(&release, "Origin: %s\nLabel: %s\nSuite: %s\nCodename: %s\nDate: %s\n", about.Origin, about.Label, about.Suite, about.Codename, date.Format(time.RFC1123))
	if r.fault == Expired {
		fmt.Fprintf(&release, "Valid-Until: %s\n", date.Add(-24*time.Hour).Format(time.RFC1123))
	}
	if place != "" {
		release.WriteString("Components: main\n")
	}
	release.WriteString("Architectures: all amd64 arm64\nSHA256:\n")
	for _, name := range slices.Sorted(maps.Keys(indexes)) {
		fmt.Fprintf(&release, " %x %d %s\n", sha256.Sum256(indexes[name]), len(indexes[name]), name)
		files[dir+name] = indexes[name]
	}
	files[dir+"InRelease"] = r.sign(release.String())
}

// sign returns a text with the signature of the repository.
func (r *Repository) sign(text string) []byte {
	signer := r.signer
	if r.fault == WrongKey {
		_, signer = keys()
	}
	var signed bytes.Buffer
	w, err := clearsign.Encode(&signed, signer.PrivateKey, nil)
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		r.t.Errorf("cannot sign the Release: %v", err)
	}
	return signed.Bytes()
}

// ServeHTTP implements http.Handler.
func (r *Repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(request.URL.Path, "/"), "./")
	r.mu.Lock()
	r.asked = append(r.asked, name)
	data, found := r.files[name]
	down, slow, suites := r.fault == Down, r.slow, r.suites
	r.mu.Unlock()
	if slow != nil && strings.HasPrefix(name, "pool/") {
		select {
		case <-slow:
		case <-request.Context().Done():
			return
		}
	}
	switch {
	case down:
		http.Error(w, "out of order", http.StatusServiceUnavailable)
	case strings.HasPrefix(name, folders):
		for _, suite := range suites {
			if file, found := strings.CutPrefix(name, folders+suite[0]+"/"); found {
				http.ServeFile(w, request, filepath.Join(suite[1], filepath.Base(file)))
				return
			}
		}
		http.NotFound(w, request)
	case !found:
		http.NotFound(w, request)
	default:
		http.ServeContent(w, request, name, time.Time{}, bytes.NewReader(data))
	}
}

// Key is the public key that the repository should be signed with, as apt reads it
// from a file with the ending .asc.
func (r *Repository) Key() []byte {
	var out bytes.Buffer
	w, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	if err == nil {
		err = r.signer.Serialize(w)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		r.t.Fatalf("cannot write the key: %v", err)
	}
	return out.Bytes()
}
