// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// Laps that count, each of so many chats a variant. One more before them warms the API server up.
const (
	costLaps  = 10
	costChats = 40
)

// costs are those of one write in milliseconds: CPU of the API server and of etcd, and the median of what the client
// waits.
type costs struct {
	APIServer float64 `json:"apiserver_cpu_ms"`
	Etcd      float64 `json:"etcd_cpu_ms"`
	Latency   float64 `json:"latency_ms"`
	Bytes     int     `json:"bytes"`
}

// BenchmarkWrites measures what each write of a turn costs the API server, as Parley is installed and with parts of
// what it installs left out. The variants take turns, so that the machine's mood of the minute meets all.
func BenchmarkWrites(b *testing.B) {
	turn := newSpecimen(b)
	for _, v := range variants {
		v.install(b)
	}
	writers := make([]*writer, len(variants))
	for i, v := range variants {
		writers[i] = newWriter(b, v, turn)
	}
	control := findControlPlane(b)
	for b.Loop() {
		table := map[string]map[string]*costs{}
		for lap := range costLaps + 1 {
			for _, w := range writers {
				measured := w.lap(b, control, lap)
				if lap > 0 {
					add(table, w.variant.name, measured)
				}
			}
		}
		printCosts(table)
		publishCosts(b, table)
	}
}

// lapCosts are the costs of a lap by the name of the write.
type lapCosts map[string]*lapCost

type lapCost struct {
	apiServer, etcd time.Duration
	waited          []time.Duration
	bytes           int
}

// lap does each write for so many chats before it does the next.
func (w *writer) lap(b *testing.B, control controlPlane, lap int) lapCosts {
	b.Helper()
	measured := lapCosts{}
	for i := range w.chats {
		w.chats[i] = &writtenChat{name: fmt.Sprintf("cost-%d-%d", lap, i)}
	}
	for _, step := range steps {
		c := &lapCost{}
		apiServer, etcd := control.used(b)
		for _, chat := range w.chats {
			body := step.body(w, chat)
			began := time.Now()
			step.write(b, w, chat, body)
			c.waited, c.bytes = append(c.waited, time.Since(began)), len(body)
		}
		apiServerNow, etcdNow := control.used(b)
		c.apiServer, c.etcd = apiServerNow-apiServer, etcdNow-etcd
		measured[step.name] = c
	}
	return measured
}

// add adds a lap to the table; the latency is the median of the laps' medians.
func add(table map[string]map[string]*costs, variant string, lap lapCosts) {
	const perMilli = float64(time.Millisecond)
	if table[variant] == nil {
		table[variant] = map[string]*costs{}
	}
	for name, c := range lap {
		sum := table[variant][name]
		if sum == nil {
			sum = &costs{}
			table[variant][name] = sum
		}
		slices.Sort(c.waited)
		sum.APIServer += float64(c.apiServer) / perMilli / costChats / costLaps
		sum.Etcd += float64(c.etcd) / perMilli / costChats / costLaps
		sum.Latency += float64(c.waited[len(c.waited)/2]) / perMilli / costLaps
		sum.Bytes = c.bytes
	}
}

func printCosts(table map[string]map[string]*costs) {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { fmt.Fprintln(out, strings.Join(cells, "\t")+"\t") }
	heading := []string{"CPU ms of API server (etcd), latency ms"}
	for _, v := range variants {
		heading = append(heading, v.name)
	}
	row(heading...)
	sums := make([]costs, len(variants))
	for _, step := range steps {
		cells := []string{step.name}
		for i, v := range variants {
			c := table[v.name][step.name]
			cells = append(cells, c.String())
			sums[i].APIServer, sums[i].Etcd, sums[i].Latency = sums[i].APIServer+c.APIServer, sums[i].Etcd+c.Etcd,
				sums[i].Latency+c.Latency
		}
		row(cells...)
	}
	cells := []string{"sum"}
	for i := range sums {
		cells = append(cells, sums[i].String())
	}
	row(cells...)
	_ = out.Flush()
}

// String implements fmt.Stringer.
func (c *costs) String() string {
	return fmt.Sprintf("%.2f (%.2f) %.2f", c.APIServer, c.Etcd, c.Latency)
}

// publishCosts writes the table to the file that BENCH_OUT names, if it names one.
func publishCosts(b *testing.B, table map[string]map[string]*costs) {
	b.Helper()
	out := os.Getenv("BENCH_OUT")
	if out == "" {
		return
	}
	raw, err := json.MarshalIndent(table, "  ", "  ")
	if err == nil {
		err = os.WriteFile(out, raw, 0o600)
	}
	check.OK(b, err)
}

// controlPlane is the folders in /proc of the processes of the test's control plane.
type controlPlane struct{ apiServer, etcd string }

var etcdPort = regexp.MustCompile(`--etcd-servers=[^\x00]*:(\d+)`)

// findControlPlane finds the processes by the ports that they listen on.
func findControlPlane(b *testing.B) controlPlane {
	b.Helper()
	host, err := url.Parse(cluster.Config.Host)
	check.OK(b, err)
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check.OK(b, err)
	find := func(what string) (dir, line string) {
		for _, path := range lines {
			raw, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(raw), what) {
				return filepath.Dir(path), string(raw)
			}
		}
		b.Fatalf("no process has %s", what)
		return "", ""
	}
	apiServer, line := find("--secure-port=" + host.Port() + "\x00")
	port := etcdPort.FindStringSubmatch(line)
	if port == nil {
		b.Fatalf("%q names no etcd", line)
	}
	etcd, _ := find("--listen-client-urls=http://127.0.0.1:" + port[1] + "\x00")
	return controlPlane{apiServer, etcd}
}

// used is the CPU time of both since they began.
func (c controlPlane) used(b *testing.B) (apiServer, etcd time.Duration) {
	b.Helper()
	return cpuOf(b, c.apiServer), cpuOf(b, c.etcd)
}

func cpuOf(b *testing.B, dir string) time.Duration {
	b.Helper()
	threads, err := filepath.Glob(dir + "/task/*/schedstat")
	check.OK(b, err)
	var sum time.Duration
	for _, path := range threads {
		raw, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // The thread has ended.
		}
		var nanoseconds int64
		if _, scanned := fmt.Sscan(string(raw), &nanoseconds); err != nil || scanned != nil {
			b.Fatalf("reading %s: %v, %v", path, err, scanned)
		}
		sum += time.Duration(nanoseconds)
	}
	return sum
}

// variant is the API as it is installed, or a copy of its kinds in a group of its own, in which something is missing.
// No policy binds a copy.
type variant struct {
	name, group string
	change      func(*apiextensionsv1.CustomResourceDefinitionVersion)
}

var variants = []variant{
	{"as installed", v1beta1.GroupVersion.Group, nil},
	{"without policies", "schema.parley.test", func(*apiextensionsv1.CustomResourceDefinitionVersion) {}},
	{"without rules", "structure.parley.test",
		func(v *apiextensionsv1.CustomResourceDefinitionVersion) { withoutRules(v.Schema.OpenAPIV3Schema) }},
	{"without schema", "free.parley.test", withoutSchema},
}

// withoutRules takes the CEL rules out of a schema.
func withoutRules(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations = nil
	for name, p := range s.Properties {
		withoutRules(&p)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		withoutRules(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withoutRules(s.AdditionalProperties.Schema)
	}
}

// withoutSchema leaves of a schema that there is an object.
func withoutSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) {
	v.SelectableFields = nil // They have to be in the schema.
	v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
}

// install installs the kinds of a turn for a variant.
func (v variant) install(b *testing.B) {
	b.Helper()
	if v.change == nil {
		return
	}
	var copies []*apiextensionsv1.CustomResourceDefinition
	for _, plural := range []string{"chats", "chatmessages"} {
		raw, err := os.ReadFile(testcluster.Path("config", "crd", "bases", "parley.dev_"+plural+".yaml"))
		check.OK(b, err)
		var crd apiextensionsv1.CustomResourceDefinition
		check.OK(b, yaml.Unmarshal(raw, &crd))
		crd.Name, crd.Spec.Group = plural+"."+v.group, v.group
		crd.Spec.Names.Categories, crd.Spec.Names.ShortNames = nil, nil
		v.change(&crd.Spec.Versions[0])
		copies = append(copies, &crd)
	}
	if _, err := envtest.InstallCRDs(cluster.Config, envtest.CRDInstallOptions{CRDs: copies}); err != nil {
		b.Fatal(err)
	}
}
