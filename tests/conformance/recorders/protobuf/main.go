// Writes random objects of every kind of Kubernetes' API as protobuf, and as the JSON of what the API server
// reads of it: one line a pair. Arguments: a seed, and how often what may be absent is.
package main

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	admissionregv1 "k8s.io/api/admissionregistration/v1"
	admissionregv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	svmv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonser "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/randfill"
)

const letters = "abcdefghijklmnopqrstuvwxyz-./ \"\\\u00e4\u4e16\U0001f600<&"

// Short texts, with letters that are more than a byte and more than a UTF-16 unit.
func word(c randfill.Continue) string {
	r := []rune(letters)
	n := c.Intn(6)
	out := make([]rune, n)
	for i := range out {
		out[i] = r[c.Intn(len(r))]
	}
	return string(out)
}

func rawJSON(c randfill.Continue) []byte {
	all := []string{`{"a":1,"b":[true,null,"x"]}`, `{"f:metadata":{"f:labels":{".":{}}}}`, `{}`}
	return []byte(all[c.Intn(len(all))])
}

// How deep a schema is that is being filled.
var depth = 0

// What must not be any value: quantities, times and JSON are to be valid; of numbers the ends are wanted.
func funcs() []any {
	return []any{
		func(s *string, c randfill.Continue) { *s = word(c) },
		func(i *int32, c randfill.Continue) {
			*i = []int32{0, 1, -1, 127, 128, 2147483647, -2147483648}[c.Intn(7)]
		},
		func(i *int64, c randfill.Continue) {
			*i = []int64{0, 1, -1, 300, 9223372036854775807, -9223372036854775808}[c.Intn(6)]
		},
		func(f *float64, c randfill.Continue) { *f = []float64{0, 1, -2.5, 1e30, 0.1}[c.Intn(5)] },
		func(q *resource.Quantity, c randfill.Continue) {
			if c.Intn(8) > 0 {
				*q = resource.MustParse([]string{"0", "100m", "1Gi", "1500m", "1e3", "-2", "1u", "12345678901234567890"}[c.Intn(8)])
			}
		},
		func(t *metav1.Time, c randfill.Continue) {
			if c.Intn(4) > 0 {
				t.Time = time.Unix([]int64{0, 1, -1, 1700000000, 253402300799, -62135596799}[c.Intn(6)], 0)
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) {
			if c.Intn(4) > 0 {
				t.Time = time.Unix([]int64{0, 1700000000, -5}[c.Intn(3)], []int64{0, 123456789, 999, 500000000}[c.Intn(4)])
			}
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			if c.Bool() {
				*v = intstr.FromInt32(int32(c.Intn(3)))
			} else {
				*v = intstr.FromString(word(c))
			}
		},
		func(r *runtime.RawExtension, c randfill.Continue) {
			if c.Bool() {
				r.Raw = rawJSON(c)
			}
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.Raw = rawJSON(c) },
		func(j *apiext.JSON, c randfill.Continue) {
			j.Raw = []byte([]string{"1", "\"x\"", "null", "{\"a\":[]}", "false"}[c.Intn(5)])
		},
		func(v *authorizationv1.ExtraValue, c randfill.Continue) { *v = []string{word(c), "x"} },
		func(v *authenticationv1.ExtraValue, c randfill.Continue) { *v = []string{word(c)} },
		func(v *certificatesv1.ExtraValue, c randfill.Continue) { *v = []string{word(c)} },
		func(v *certificatesv1beta1.ExtraValue, c randfill.Continue) { *v = []string{word(c)} },
		func(o *runtime.Object, c randfill.Continue) {},
		func(t *metav1.TypeMeta, c randfill.Continue) {}, // within another object protobuf does not carry it
		func(j *apiext.JSONSchemaProps, c randfill.Continue) {
			depth++
			defer func() { depth-- }()
			if depth > 3 {
				j.Type = "object"
				return
			}
			c.FillNoCustom(j)
		},
		func(j *apiext.JSONSchemaPropsOrBool, c randfill.Continue) {
			if c.Bool() {
				j.Allows = true
				j.Schema = &apiext.JSONSchemaProps{}
				c.Fill(j.Schema)
			} else {
				j.Allows = c.Bool()
			}
		},
		func(j *apiext.JSONSchemaPropsOrArray, c randfill.Continue) {
			j.Schema = &apiext.JSONSchemaProps{}
			if c.Bool() {
				c.Fill(j.Schema)
			} else {
				j.Schema = nil
				j.JSONSchemas = make([]apiext.JSONSchemaProps, 2)
				c.Fill(&j.JSONSchemas[0])
			}
		},
		func(j *apiext.JSONSchemaPropsOrStringArray, c randfill.Continue) {
			if c.Bool() {
				j.Schema = &apiext.JSONSchemaProps{}
				c.Fill(j.Schema)
			} else {
				j.Property = []string{"a", ""}
			}
		},
	}
}

func main() {
	seed, err := strconv.ParseInt(os.Args[1], 10, 64)
	check(err)
	absent, err := strconv.ParseFloat(os.Args[2], 64)
	check(err)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregv1.AddToScheme, admissionregv1alpha1.AddToScheme, admissionregv1beta1.AddToScheme,
		apiserverinternalv1alpha1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme,
		authorizationv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		certificatesv1.AddToScheme, certificatesv1alpha1.AddToScheme, certificatesv1beta1.AddToScheme,
		coordinationv1.AddToScheme, coordinationv1alpha2.AddToScheme, coordinationv1beta1.AddToScheme,
		corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme, flowcontrolv1.AddToScheme,
		networkingv1.AddToScheme, networkingv1beta1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme,
		rbacv1.AddToScheme, resourcev1.AddToScheme, resourcev1alpha3.AddToScheme, resourcev1beta1.AddToScheme,
		resourcev1beta2.AddToScheme, schedulingv1.AddToScheme, schedulingv1alpha2.AddToScheme,
		storagev1.AddToScheme, storagev1beta1.AddToScheme, svmv1beta1.AddToScheme, apiext.AddToScheme,
		apireg.AddToScheme,
	} {
		check(add(scheme))
	}
	protobuf_ := protobuf.NewSerializer(scheme, scheme)
	json_ := jsonser.NewSerializerWithOptions(jsonser.DefaultMetaFactory, scheme, scheme, jsonser.SerializerOptions{})
	kinds := make([]schema.GroupVersionKind, 0)
	for kind := range scheme.AllKnownTypes() {
		discovery := kind.Group == "" && strings.HasPrefix(kind.Kind, "API")
		if kind.Version == runtime.APIVersionInternal || kind.Kind == "WatchEvent" || kind.Kind == "Status" ||
			discovery || strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		// options are kinds of every group
		if strings.HasSuffix(kind.Kind, "Options") && kind.Group != "" && kind.Group != "apps" {
			continue
		}
		kinds = append(kinds, kind)
	}
	sort.Slice(kinds, func(i, k int) bool { return kinds[i].String() < kinds[k].String() })
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for n, kind := range kinds {
		obj, err := scheme.New(kind)
		check(err)
		filler := randfill.New().RandSource(rand.NewSource(seed+int64(n))).NilChance(absent).NumElements(1, 2).MaxDepth(30).Funcs(funcs()...)
		filler.Fill(obj)
		obj.GetObjectKind().SetGroupVersionKind(kind)
		var sent, shown bytes.Buffer
		check(protobuf_.Encode(obj, &sent))
		read, _, err := protobuf_.Decode(sent.Bytes(), nil, nil)
		check(err)
		check(json_.Encode(read, &shown))
		check(out.Encode(map[string]any{"protobuf": sent.Bytes(), "json": json.RawMessage(shown.Bytes())}))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
