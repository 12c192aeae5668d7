package inventory

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

var server = Inventory{
	Machine:     Machine{Vendor: "Dell Inc.", Product: "PowerEdge R640", Firmware: "Dell Inc. 2.21.2", Architecture: "amd64", Kind: Physical},
	Processor:   Processor{Model: "Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz", Sockets: 2, Cores: 32, Threads: 64},
	MemoryBytes: 128 << 30,
	Disks:       []Disk{{Name: "nvme0n1", Model: "PM983", Bytes: 960197124096}, {Name: "sda", Model: "ST4000NM", Bytes: 4000787030016, Rotational: true}},
	Interfaces:  []Interface{{Name: "eno1", MAC: "52:54:00:12:34:56", Addresses: []string{"192.0.2.7/24", "2001:db8::7/64"}}},
}

// TestEncode checks that what is told is read again as it was, with its format number.
func TestEncode(t *testing.T) {
	t.Parallel()
	for _, v := range []Inventory{{}, server} {
		body, err := v.Encode()
		if err != nil || !strings.HasPrefix(string(body), `{"format":1`) {
			t.Fatalf("%s, %v", body, err)
		}
		if got, err := Decode(body); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%s is read as %+v, %v", body, got, err)
		}
	}
	if got := server.Fit(); !reflect.DeepEqual(got, server) {
		t.Errorf("it was made fit as %+v", got)
	}
}

// TestDecode checks that the site refuses what no worker tells, and says why.
func TestDecode(t *testing.T) {
	t.Parallel()
	many := func(n int, part string) string {
		return strings.TrimSuffix(strings.Repeat(part+",", n), ",")
	}
	for want, body := range map[string]string{
		"bears no format number":                    `{}`,
		"written by format 2, this version reads 1": `{"format":2}`,
		"unexpected end of JSON input":              `{"format":1`,
		"262145 bytes; at most 262144":              strings.Repeat(" ", MaxBody+1),
		"machine.kind: \"cloud\" is invalid":        `{"format":1,"machine":{"kind":"cloud"}}`,
		"machine.vendor: \"a\\nb\" is invalid":      `{"format":1,"machine":{"vendor":"a\nb"}}`,
		"machine.product":                           `{"format":1,"machine":{"product":"` + strings.Repeat("x", MaxText+1) + `"}}`,
		"processor.model":                           `{"format":1,"processor":{"model":"\u202e"}}`,
		"a number is below zero":                    `{"format":1,"memory-bytes":-1}`,
		"disks: there are 65; use at most 64":       `{"format":1,"disks":[` + many(65, `{"name":"a"}`) + `]}`,
		"disks.name: it is empty":                   `{"format":1,"disks":[{}]}`,
		"disks.bytes: -1 is invalid":                `{"format":1,"disks":[{"name":"a","bytes":-1}]}`,
		"interfaces: there are 65":                  `{"format":1,"interfaces":[` + many(65, `{"name":"a"}`) + `]}`,
		"interfaces.addresses: there are 17":        `{"format":1,"interfaces":[{"name":"a","addresses":[` + many(17, `"192.0.2.7/24"`) + `]}]}`,
		`interfaces.addresses: "192.0.2.7" is inv`:  `{"format":1,"interfaces":[{"name":"a","addresses":["192.0.2.7"]}]}`,
		`interfaces.addresses: "::1%eth0/64"`:       `{"format":1,"interfaces":[{"name":"a","addresses":["::1%eth0/64"]}]}`,
		`interfaces.mac: "\x1b[31m" is invalid`:     `{"format":1,"interfaces":[{"name":"a","mac":"\u001b[31m"}]}`,
	} {
		if _, err := Decode([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s is read with %v, want %s", body, err, want)
		}
	}
	if _, err := Decode([]byte(`{"format":1,"serial":"of a newer version"}`)); err != nil {
		t.Error(err)
	}
}

// TestFit checks that a machine of too much is cut and says so, and that what it tells is
// never refused: neither for a part nor for its size.
func TestFit(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("<", 500) // In JSON each is of six bytes.
	v := Inventory{Machine: Machine{Vendor: " a\tb\x1b[31m ", Product: wide, Firmware: wide, Architecture: wide, Kind: "cloud"}, Processor: Processor{wide, -1, math.MaxInt, -7}, MemoryBytes: -1}
	for i := range 300 {
		v.Disks = append(v.Disks, Disk{Name: fmt.Sprintf("%03d%s", 299-i, wide), Model: wide, Bytes: math.MaxInt64, Rotational: true, Removable: true})
		n := Interface{Name: fmt.Sprintf("%03d%s", i, wide), MAC: wide, Addresses: []string{"no address", "192.0.2.7"}}
		for j := range 40 {
			n.Addresses = append(n.Addresses, fmt.Sprintf("2001:db8:1111:2222:3333:4444:5555:%x/128", 0x1000+j))
		}
		v.Interfaces = append(v.Interfaces, n)
	}
	v.Disks = append(v.Disks, Disk{Name: "\n"}, Disk{Name: "299" + wide})
	got := v.Fit()
	if got.More != 236+236 || len(got.Disks) != MaxDisks || len(got.Interfaces) != MaxInterfaces || len(got.Interfaces[0].Addresses) != MaxAddresses || !strings.HasPrefix(got.Disks[0].Name, "000<") {
		t.Errorf("%d disks, %d interfaces, %d more", len(got.Disks), len(got.Interfaces), got.More)
	}
	if want := (Machine{"a b [31m", wide[:MaxText], wide[:MaxText], wide[:MaxText], ""}); got.Machine != want || got.Processor.Sockets != 0 || got.MemoryBytes != 0 {
		t.Errorf("it is %+v", got.Machine)
	}
	body, err := got.Encode()
	if err != nil || len(body) > MaxBody {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if _, err := Decode(body); err != nil {
		t.Error(err)
	}
}

// FuzzFit checks that whatever a machine says can be told, and that nothing changes when it
// is made fit again.
func FuzzFit(f *testing.F) {
	whole, err := json.Marshal(server)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(whole))
	f.Add(`{"machine":{"vendor":"\ud800\u0000 é"},"disks":[{"name":"é"},{"name":" "},{"name":"a"},{"name":"a"}],"interfaces":[{"name":"a\\","addresses":["::ffff:192.0.2.1/96","fe80::1%a/64"]}]}`)
	f.Add(`{"processor":{"sockets":-1},"more":-3}`)
	f.Fuzz(func(t *testing.T, text string) {
		var v Inventory
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		fit := v.Fit()
		body, err := fit.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(body)
		if err != nil {
			t.Fatalf("%s is refused: %v", body, err)
		}
		again, err := got.Fit().Encode()
		got.More = fit.More
		if second, _ := got.Encode(); err != nil || string(second) != string(body) || fit.More == 0 && string(again) != string(body) {
			t.Errorf("made fit again it is %s, not %s", again, body)
		}
	})
}

// FuzzDecode checks that what a host tells is refused, or is an inventory that is told on as
// it came.
func FuzzDecode(f *testing.F) {
	body, err := server.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"format":1,"more":3}`))
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := Decode(body)
		if err != nil {
			return
		}
		again, err := v.Encode()
		if err != nil {
			t.Fatal(err)
		}
		told, err := Decode(again)
		if err != nil {
			t.Fatalf("%s is told on as %s: %v", body, again, err)
		}
		if third, err := told.Encode(); err != nil || string(third) != string(again) {
			t.Fatalf("%s is told on as %s and then as %s: %v", body, again, third, err)
		}
	})
}
