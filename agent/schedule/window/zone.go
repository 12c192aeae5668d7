package window

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // A minimal machine has no zone data of its own.

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// SiteLocal names the time zone of the site.
const SiteLocal = "site-local"

// Zone is where a window's days and start are read: site-local, UTC or a zone
// of the IANA time zone database. The zero value is site-local.
type Zone struct {
	// location is the one in zones, so that equal zones compare equal.
	location *time.Location
}

// zones caches the location of each zone parsed so far, by name. It holds only
// zones that exist, so the size of the database bounds it.
var zones = struct {
	sync.Mutex
	known map[string]*time.Location
}{known: map[string]*time.Location{}}

// zonePath is stricter than time.LoadLocation, which also accepts
// "Europe//Rome", "localtime" and "right/UTC" on a machine with zone files.
var zonePath = text.Pattern(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*){0,2}$`)

// ParseZone parses "site-local", "UTC" or an IANA name such as
// "Europe/Stockholm"; empty means site-local. An offset such as "+02:00"
// is an error, because it is wrong for half of the year. The error for an
// unknown name suggests the closest known name.
func ParseZone(text string) (Zone, error) {
	switch text {
	case "", SiteLocal:
		return Zone{}, nil
	case "UTC":
		return Zone{location: time.UTC}, nil
	}
	zones.Lock()
	defer zones.Unlock()
	if location, ok := zones.known[text]; ok {
		return Zone{location: location}, nil
	}
	if !plausible(text) {
		return Zone{}, unknownZone(text)
	}
	location, err := time.LoadLocation(text)
	if err != nil {
		return Zone{}, unknownZone(text)
	}
	zones.known[text] = location
	return Zone{location: location}, nil
}

// plausible reports whether text may be an IANA name: a listed name in exactly
// its case, or an unlisted name in a known area, which may be a zone of a later
// release of the database.
func plausible(text string) bool {
	if !zonePath().MatchString(text) {
		return false
	}
	folded := func(name string) bool { return strings.EqualFold(name, text) }
	if i := slices.IndexFunc(zoneNames(), folded); i >= 0 {
		return zoneNames()[i] == text
	}
	area, _, inArea := strings.Cut(text, "/")
	_, known := zoneAreas[area]
	return inArea && known
}

func unknownZone(text string) error {
	const hint = "use site-local, UTC or an IANA name"
	if closest, ok := closestZone(text); ok {
		return fmt.Errorf("%s is not a time zone; %s; did you mean %s?", quote(text), hint, closest)
	}
	return fmt.Errorf("%s is not a time zone; %s such as Europe/Stockholm", quote(text), hint)
}

// closestZone returns the zone that a person most likely meant. It compares
// full names and also last elements, because people remember the city.
func closestZone(text string) (string, bool) {
	if len(text) > maxGuess {
		return "", false
	}
	text = strings.ReplaceAll(strings.TrimSpace(text), " ", "_")
	names := append([]string{SiteLocal, "UTC"}, zoneNames()...)
	cities := make([]string, len(names))
	for i, name := range names {
		cities[i] = lastElement(name)
		if strings.EqualFold(name, text) || strings.EqualFold(cities[i], lastElement(text)) {
			return name, true
		}
	}
	if name, ok := Closest(text, names); ok {
		return name, true
	}
	if city, ok := Closest(lastElement(text), cities); ok {
		return names[slices.Index(cities, city)], true
	}
	return "", false
}

func lastElement(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// String returns the canonical name; that of the zero value is "site-local".
func (z Zone) String() string {
	if z.location == nil {
		return SiteLocal
	}
	return z.location.String()
}

// Location returns the zone's location: site for site-local, and UTC when site
// is nil.
func (z Zone) Location(site *time.Location) *time.Location {
	switch {
	case z.location != nil:
		return z.location
	case site != nil:
		return site
	}
	return time.UTC
}

// zoneNames returns the sorted names of the IANA time zone database, release
// 2025c. ParseZone suggests from them.
var zoneNames = sync.OnceValue(func() []string {
	var names []string
	for area, list := range zoneAreas {
		for name := range strings.FieldsSeq(list) {
			if area != "" {
				name = area + "/" + name
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
})

// zoneAreas maps each area to its zones; zones without an area are under "".
// Names without an area such as "GMT+0" are omitted: they are offsets.
var zoneAreas = map[string]string{
	"": `
		CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT Greenwich HST Hongkong Iceland Iran Israel Jamaica Japan
		Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT UTC
		Universal W-SU WET Zulu
	`,
	"Africa": `
		Abidjan Accra Addis_Ababa Algiers Asmara Asmera Bamako Bangui Banjul Bissau Blantyre Brazzaville Bujumbura Cairo
		Casablanca Ceuta Conakry Dakar Dar_es_Salaam Djibouti Douala El_Aaiun Freetown Gaborone Harare Johannesburg Juba
		Kampala Khartoum Kigali Kinshasa Lagos Libreville Lome Luanda Lubumbashi Lusaka Malabo Maputo Maseru Mbabane Mogadishu
		Monrovia Nairobi Ndjamena Niamey Nouakchott Ouagadougou Porto-Novo Sao_Tome Timbuktu Tripoli Tunis Windhoek
	`,
	"America": `
		Adak Anchorage Anguilla Antigua Araguaina Argentina/Buenos_Aires Argentina/Catamarca Argentina/ComodRivadavia
		Argentina/Cordoba Argentina/Jujuy Argentina/La_Rioja Argentina/Mendoza Argentina/Rio_Gallegos Argentina/Salta
		Argentina/San_Juan Argentina/San_Luis Argentina/Tucuman Argentina/Ushuaia Aruba Asuncion Atikokan Atka Bahia
		Bahia_Banderas Barbados Belem Belize Blanc-Sablon Boa_Vista Bogota Boise Buenos_Aires Cambridge_Bay Campo_Grande
		Cancun Caracas Catamarca Cayenne Cayman Chicago Chihuahua Ciudad_Juarez Coral_Harbour Cordoba Costa_Rica Coyhaique
		Creston Cuiaba Curacao Danmarkshavn Dawson Dawson_Creek Denver Detroit Dominica Edmonton Eirunepe El_Salvador Ensenada
		Fort_Nelson Fort_Wayne Fortaleza Glace_Bay Godthab Goose_Bay Grand_Turk Grenada Guadeloupe Guatemala Guayaquil Guyana
		Halifax Havana Hermosillo Indiana/Indianapolis Indiana/Knox Indiana/Marengo Indiana/Petersburg Indiana/Tell_City
		Indiana/Vevay Indiana/Vincennes Indiana/Winamac Indianapolis Inuvik Iqaluit Jamaica Jujuy Juneau Kentucky/Louisville
		Kentucky/Monticello Knox_IN Kralendijk La_Paz Lima Los_Angeles Louisville Lower_Princes Maceio Managua Manaus Marigot
		Martinique Matamoros Mazatlan Mendoza Menominee Merida Metlakatla Mexico_City Miquelon Moncton Monterrey Montevideo
		Montreal Montserrat Nassau New_York Nipigon Nome Noronha North_Dakota/Beulah North_Dakota/Center
		North_Dakota/New_Salem Nuuk Ojinaga Panama Pangnirtung Paramaribo Phoenix Port-au-Prince Port_of_Spain Porto_Acre
		Porto_Velho Puerto_Rico Punta_Arenas Rainy_River Rankin_Inlet Recife Regina Resolute Rio_Branco Rosario Santa_Isabel
		Santarem Santiago Santo_Domingo Sao_Paulo Scoresbysund Shiprock Sitka St_Barthelemy St_Johns St_Kitts St_Lucia
		St_Thomas St_Vincent Swift_Current Tegucigalpa Thule Thunder_Bay Tijuana Toronto Tortola Vancouver Virgin Whitehorse
		Winnipeg Yakutat Yellowknife
	`,
	"Antarctica": `
		Casey Davis DumontDUrville Macquarie Mawson McMurdo Palmer Rothera South_Pole Syowa Troll Vostok
	`,
	"Arctic": `
		Longyearbyen
	`,
	"Asia": `
		Aden Almaty Amman Anadyr Aqtau Aqtobe Ashgabat Ashkhabad Atyrau Baghdad Bahrain Baku Bangkok Barnaul Beirut Bishkek
		Brunei Calcutta Chita Choibalsan Chongqing Chungking Colombo Dacca Damascus Dhaka Dili Dubai Dushanbe Famagusta Gaza
		Harbin Hebron Ho_Chi_Minh Hong_Kong Hovd Irkutsk Istanbul Jakarta Jayapura Jerusalem Kabul Kamchatka Karachi Kashgar
		Kathmandu Katmandu Khandyga Kolkata Krasnoyarsk Kuala_Lumpur Kuching Kuwait Macao Macau Magadan Makassar Manila Muscat
		Nicosia Novokuznetsk Novosibirsk Omsk Oral Phnom_Penh Pontianak Pyongyang Qatar Qostanay Qyzylorda Rangoon Riyadh
		Saigon Sakhalin Samarkand Seoul Shanghai Singapore Srednekolymsk Taipei Tashkent Tbilisi Tehran Tel_Aviv Thimbu
		Thimphu Tokyo Tomsk Ujung_Pandang Ulaanbaatar Ulan_Bator Urumqi Ust-Nera Vientiane Vladivostok Yakutsk Yangon
		Yekaterinburg Yerevan
	`,
	"Atlantic": `
		Azores Bermuda Canary Cape_Verde Faeroe Faroe Jan_Mayen Madeira Reykjavik South_Georgia St_Helena Stanley
	`,
	"Australia": `
		ACT Adelaide Brisbane Broken_Hill Canberra Currie Darwin Eucla Hobart LHI Lindeman Lord_Howe Melbourne NSW North Perth
		Queensland South Sydney Tasmania Victoria West Yancowinna
	`,
	"Brazil": `
		Acre DeNoronha East West
	`,
	"Canada": `
		Atlantic Central Eastern Mountain Newfoundland Pacific Saskatchewan Yukon
	`,
	"Chile": `
		Continental EasterIsland
	`,
	"Etc": `
		GMT GMT+0 GMT+1 GMT+10 GMT+11 GMT+12 GMT+2 GMT+3 GMT+4 GMT+5 GMT+6 GMT+7 GMT+8 GMT+9 GMT-0 GMT-1 GMT-10 GMT-11 GMT-12
		GMT-13 GMT-14 GMT-2 GMT-3 GMT-4 GMT-5 GMT-6 GMT-7 GMT-8 GMT-9 GMT0 Greenwich UCT UTC Universal Zulu
	`,
	"Europe": `
		Amsterdam Andorra Astrakhan Athens Belfast Belgrade Berlin Bratislava Brussels Bucharest Budapest Busingen Chisinau
		Copenhagen Dublin Gibraltar Guernsey Helsinki Isle_of_Man Istanbul Jersey Kaliningrad Kiev Kirov Kyiv Lisbon Ljubljana
		London Luxembourg Madrid Malta Mariehamn Minsk Monaco Moscow Nicosia Oslo Paris Podgorica Prague Riga Rome Samara
		San_Marino Sarajevo Saratov Simferopol Skopje Sofia Stockholm Tallinn Tirane Tiraspol Ulyanovsk Uzhgorod Vaduz Vatican
		Vienna Vilnius Volgograd Warsaw Zagreb Zaporozhye Zurich
	`,
	"Indian": `
		Antananarivo Chagos Christmas Cocos Comoro Kerguelen Mahe Maldives Mauritius Mayotte Reunion
	`,
	"Mexico": `
		BajaNorte BajaSur General
	`,
	"Pacific": `
		Apia Auckland Bougainville Chatham Chuuk Easter Efate Enderbury Fakaofo Fiji Funafuti Galapagos Gambier Guadalcanal
		Guam Honolulu Johnston Kanton Kiritimati Kosrae Kwajalein Majuro Marquesas Midway Nauru Niue Norfolk Noumea Pago_Pago
		Palau Pitcairn Pohnpei Ponape Port_Moresby Rarotonga Saipan Samoa Tahiti Tarawa Tongatapu Truk Wake Wallis Yap
	`,
	"US": `
		Alaska Aleutian Arizona Central East-Indiana Eastern Hawaii Indiana-Starke Michigan Mountain Pacific Samoa
	`,
}
