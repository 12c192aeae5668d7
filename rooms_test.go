package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/osupgrade/terraform-provider-osupgrade/"

// programs are the packages of the two main.go, with the one package that each starts.
var programs = map[string]string{".": "provider", "agent": "agent/cli"}

// rooms lists what each room may import besides itself. A part of a room that has a row of
// its own may import less than its room. Tests may import more.
var rooms = map[string]string{
	"provider": "agent/api/client agent/base/text agent/schedule/window agent/wire/document agent/wire/inventory agent/wire/names agent/wire/release agent/wire/v1",

	"agent/cli":        "agent/site agent/controller agent/tell agent/api agent/identity agent/host agent/run agent/log agent/wire agent/schedule agent/base",
	"agent/site":       "agent/controller agent/tell agent/api agent/identity agent/host agent/run agent/log agent/wire agent/schedule agent/base",
	"agent/tell":       "agent/controller agent/identity agent/run agent/log agent/wire agent/base",
	"agent/api":        "agent/tell/webhook agent/identity agent/run agent/log agent/wire agent/base",
	"agent/controller": "agent/run agent/log agent/wire agent/schedule agent/base",
	"agent/identity":   "agent/wire agent/base",
	"agent/host":       "agent/log agent/wire agent/base",
	"agent/run":        "agent/wire agent/schedule agent/base",
	"agent/log":        "agent/wire agent/base",
	"agent/wire":       "agent/schedule agent/base",
	"agent/schedule":   "agent/base",
	"agent/base":       "",

	// The provider contains a client and nothing of the server.
	"agent/api/client": "agent/wire agent/base",
	"agent/api/intent": "agent/wire agent/base",
	// What decides on a host knows the contract of a strategy, and nothing of the log.
	"agent/host/decide": "agent/host/strategy agent/wire agent/base",
	// A strategy acts on its host and knows nothing of runs and the log.
	"agent/host/strategy": "agent/host/download agent/host/osinfo agent/host/procs agent/wire agent/base",
	// The oracle reads records and is independent of everything that decides in the product.
	"agent/testing/oracle": "agent/wire",
}

// tools are for tests and for the build: they may import anything, and no room imports them.
var tools = []string{"agent/e2e", "agent/testing", "examples", "provider/acctest", "provider/schemajson"}

// roomOf returns the smallest room that contains a package, or "" for a tool.
func roomOf(folder string) string {
	for at := folder; at != "."; at = path.Dir(at) {
		if _, there := rooms[at]; there {
			return at
		}
		if slices.Contains(tools, at) {
			return ""
		}
	}
	return "none"
}

// TestRooms checks what each package imports.
func TestRooms(t *testing.T) {
	t.Parallel()
	for _, tags := range []string{"", "worker"} {
		for folder, imports := range importsOf(t, tags) {
			room, allowed := roomOf(folder), ""
			switch {
			case programs[folder] != "":
				allowed = programs[folder]
			case room == "":
				continue
			case room == "none":
				t.Errorf("%s is in no room; see rooms_test.go", folder)
			default:
				allowed = rooms[room] + " " + room
			}
			for _, imported := range imports {
				within := func(place string) bool { return imported == place || strings.HasPrefix(imported, place+"/") }
				if !slices.ContainsFunc(strings.Fields(allowed), within) || slices.ContainsFunc(tools, within) {
					t.Errorf("%s imports %s; it may import only %s", folder, imported, allowed)
				}
			}
		}
	}
}

// importsOf returns, for each of our packages, which of our packages it imports without its tests.
func importsOf(t *testing.T, tags string) map[string][]string {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "go", "list", "-tags", tags, "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("cannot list the packages: %v", err)
	}
	imports := map[string][]string{}
	for packages := json.NewDecoder(strings.NewReader(string(list))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		err := packages.Decode(&p)
		if errors.Is(err, io.EOF) {
			return imports
		}
		if err != nil {
			t.Fatal(err)
		}
		folder := path.Clean(strings.TrimPrefix(p.ImportPath+"/", module))
		imports[folder] = nil
		for _, imported := range p.Imports {
			if ours, found := strings.CutPrefix(imported, module); found {
				imports[folder] = append(imports[folder], ours)
			}
		}
	}
}

// TestTheProviderContainsNoAgent checks that whoever installs the provider does not get a
// server with it.
func TestTheProviderContainsNoAgent(t *testing.T) {
	t.Parallel()
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("cannot list the dependencies: %v", err)
	}
	contained := strings.Fields(string(list))
	if !slices.Contains(contained, module+"agent/api/client") {
		t.Fatal("the list does not even have the client; is it that of the provider?")
	}
	for _, name := range contained {
		for _, foreign := range []string{"github.com/nats-io/", "github.com/hashicorp/terraform-plugin-sdk/", "github.com/hashicorp/terraform-plugin-testing/"} {
			if strings.HasPrefix(name, foreign) {
				t.Errorf("the provider contains %s", name)
			}
		}
		ours, found := strings.CutPrefix(name, module)
		if found && !slices.Contains([]string{"provider", "agent/api/client", "agent/wire", "agent/schedule", "agent/base"}, roomOf(ours)) {
			t.Errorf("the provider contains %s", ours)
		}
	}
}
