// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/hack/localcluster/internal/layout"
)

var (
	cluster   = layout.Cluster{Dir: "/src/.parley/cluster", Bin: "/cache/cluster-1", Nodes: layout.Nodes}
	networked = layout.Cluster{Dir: cluster.Dir, Bin: cluster.Bin, Nodes: cluster.Nodes[:1], Network: "/cache/network-1"}
)

func rendered(t *testing.T, cluster layout.Cluster, base string) []byte {
	t.Helper()
	files, err := Files(cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if filepath.Base(f.Path) == base {
			return f.Body
		}
	}
	t.Fatalf("%s is not rendered", base)
	return nil
}

func TestConfigurationFilesHoldTheClustersOwnPlaces(t *testing.T) {
	for file, wants := range map[string][]string{
		"containerd.toml": {`BinaryName = "/cache/cluster-1/node/runc"`, `bin_dirs = ["/cache/cluster-1/node/cni"]`,
			`sandbox = "localhost/pause:dev"`, `config_path = "/etc/containerd/certs.d"`,
			`conf_dir = "/etc/cni/net.d"`},
		"kubelet.yaml": {`cgroupRoot: "/` + cluster.Cgroup() + `"`, `clientCAFile: "/src/.parley/cluster/pki/ca.crt"`,
			"unix:///run/containerd/containerd.sock", "port: 10250"},
		"containerd-node2.toml": {`root = "/var/lib/containerd-node2"`, `state = "/run/containerd-node2"`,
			`address = "/run/containerd-node2/containerd.sock"`},
		"kubelet-node2.yaml": {`cgroupRoot: "/` + cluster.Cgroup() + `/node2"`, "port: 10260",
			"podLogsDir: /var/log/pods-node2", "volumePluginDir: /var/lib/kubelet-node2/volumeplugins",
			"unix:///run/containerd-node2/containerd.sock"},
	} {
		body := rendered(t, cluster, file)
		for _, want := range wants {
			if !bytes.Contains(body, []byte(want)) {
				t.Errorf("%s does not hold %s:\n%s", file, want, body)
			}
		}
		if bytes.Contains(body, []byte("{{")) {
			t.Errorf("%s holds an unrendered part:\n%s", file, body)
		}
	}
}

func TestNetworkConfigurationContainsThePodRange(t *testing.T) {
	var list struct {
		Plugins []struct {
			Bridge string
			IPAM   struct {
				Ranges [][]struct{ Subnet string }
			}
		}
	}
	if err := json.Unmarshal(rendered(t, cluster, "10-bridge.conflist"), &list); err != nil {
		t.Fatal(err)
	}
	if p := list.Plugins[0]; p.Bridge != layout.PodBridge || p.IPAM.Ranges[0][0].Subnet != layout.PodCIDR {
		t.Errorf("network is %+v", p)
	}
}

func TestOnlyClusterWithNetworkHasDNS(t *testing.T) {
	const dns = "clusterDNS: [10.96.0.10]"
	if bytes.Contains(rendered(t, cluster, "kubelet.yaml"), []byte(dns)) {
		t.Error("pods of a cluster without network get a DNS server")
	}
	if body := rendered(t, networked, "kubelet.yaml"); !bytes.Contains(body, []byte(dns)) {
		t.Errorf("pods of a cluster with network get no DNS server:\n%s", body)
	}
	if body := rendered(t, networked, "Corefile"); !bytes.Contains(body, []byte("pki/admin.kubeconfig")) {
		t.Errorf("CoreDNS gets no kubeconfig:\n%s", body)
	}
}

// A development cluster that is laxer than a real one hides mistakes until production.
func TestServerFlagsEnforceProductionDefaults(t *testing.T) {
	args := APIServer(cluster).Args
	for _, want := range []string{"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, "--disable-admission-plugins") || strings.HasPrefix(arg, "--anonymous-auth") ||
			strings.HasPrefix(arg, "--feature-gates") {
			t.Errorf("%s changes what a default API server does", arg)
		}
	}
}

func TestEveryComponentIsAProgramOfTheBuild(t *testing.T) {
	programs := networked.Programs()
	for _, c := range append(Network(networked), Etcd(cluster), APIServer(cluster), ControllerManager(cluster),
		Scheduler(cluster), Containerd(cluster, layout.Nodes[1]), Kubelet(cluster, layout.Nodes[1])) {
		if !slices.Contains(programs, c.Path) {
			t.Errorf("%s runs %s, which the build does not make", c.Name, c.Path)
		}
		for _, arg := range c.Args {
			if !strings.HasPrefix(arg, "--") || strings.HasSuffix(arg, "=") {
				t.Errorf("%s has the argument %q", c.Name, arg)
			}
		}
	}
}
