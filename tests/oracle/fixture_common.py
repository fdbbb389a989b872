"""Shared machinery for gen_fixtures.py: export one program, save it, reload it,
check it against eager, and write the fixture folder.

Layout of a fixture folder
  model.pt2              torch.export.save output
  inputs.safetensors     case 0, keys in0,in1,... = i-th *user input* (flattened (args, kwargs) leaf order); tensors only
  expected.safetensors   case 0, keys out0,... = i-th flattened leaf of the eager output (tensors only)
                         + buffer.<fqn> / param.<fqn> / input.<i> for state the call mutates (value after the call)
  inputs_K / expected_K  further cases (other dynamic sizes, or successive calls when meta.sequence is true)
  reject_K.safetensors   inputs a correct engine must refuse (guards, runtime asserts); message in meta.rejects
  graph.txt              str(graph) of the program as loaded from the archive
  meta.json              see keys below; non-tensor inputs/outputs are in meta.cases[k].inputs/outputs
"""
import collections, copy, dataclasses, io, json, logging, math, os, shutil, sys, time, traceback, warnings, zipfile, zlib
warnings.simplefilter('ignore')
logging.getLogger('torch.export').setLevel(logging.ERROR)
import torch
import torch.utils._pytree as pt
from safetensors.torch import save_file

torch.set_num_threads(int(os.environ.get('FX_THREADS', '1')))
EPS = {torch.float16: 2**-10, torch.bfloat16: 2**-7, torch.float32: 2**-23, torch.float64: 2**-52, torch.complex64: 2**-23}


# module-level so that sample inputs pickle by reference (fixture_common.FxPoint / FxOut)
FxPoint = collections.namedtuple('FxPoint', ['x', 'y'])
pt._register_namedtuple(FxPoint, serialized_type_name='fixtures.FxPoint')
@dataclasses.dataclass
class FxOut:
    logits: torch.Tensor
    extra: object = None
torch.export.register_dataclass(FxOut, serialized_type_name='fixtures.FxOut')


def seed_for(name):
    return zlib.crc32(name.encode()) & 0x7fffffff


def leaves(x):
    return pt.tree_leaves(x)


def clone_tree(x):
    def f(t):
        if not isinstance(t, torch.Tensor):
            return t
        c = torch.empty_strided(t.size(), t.stride(), dtype=t.dtype) if t.numel() else t.clone()
        if t.numel():
            c.copy_(t)
        return c
    return pt.tree_map(f, x)


def describe(x):
    if isinstance(x, torch.Tensor):
        return {'kind': 'tensor', 'dtype': str(x.dtype)[6:], 'shape': list(x.shape), 'stride': list(x.stride())}
    if isinstance(x, bool): return {'kind': 'bool', 'value': x}
    if isinstance(x, int): return {'kind': 'int', 'value': x}
    if isinstance(x, float): return {'kind': 'float', 'value': x if math.isfinite(x) else repr(x)}
    if x is None: return {'kind': 'none'}
    if isinstance(x, str): return {'kind': 'str', 'value': x}
    return {'kind': type(x).__name__, 'value': repr(x)}


def op_hist(gm):
    h = collections.Counter()
    for n in gm.graph.nodes:
        if n.op == 'call_function':
            t = n.target
            h[str(t) if not callable(t) or hasattr(t, '_schema') or hasattr(t, '_overloadpacket') else (getattr(t, '__module__', '') + '.' + getattr(t, '__name__', str(t))).replace('torch._ops.higher_order', 'higher_order')] += 1
    for _, sub in gm.named_children():
        if isinstance(sub, torch.fx.GraphModule):
            h.update(op_hist(sub))
    return h


def n_nodes(gm):
    return sum(1 for n in gm.graph.nodes if n.op == 'call_function') + sum(n_nodes(s) for _, s in gm.named_children() if isinstance(s, torch.fx.GraphModule))


def compare(ref, got):
    """max abs error, max error relative to the reference's own max magnitude; raises on structure mismatch."""
    mabs = mrel = 0.0
    a, b = leaves(ref), leaves(got)
    assert len(a) == len(b), (len(a), len(b))
    for x, y in zip(a, b):
        if isinstance(x, torch.Tensor):
            assert isinstance(y, torch.Tensor) and x.shape == y.shape, (x.shape, getattr(y, 'shape', y))
            if x.numel() == 0: continue
            if x.dtype.is_complex or y.dtype.is_complex:
                x, y = torch.view_as_real(x.resolve_conj()), torch.view_as_real(y.resolve_conj())
            x, y = x.detach().double(), y.detach().double()
            ok = torch.isfinite(x)
            assert torch.equal(ok, torch.isfinite(y)), 'non-finite pattern differs'
            if ok.any():
                d = (x - y)[ok].abs().max().item(); s = x[ok].abs().max().item()
                mabs = max(mabs, d); mrel = max(mrel, d / s if s else d)
        else:
            assert (x == y) or (x != x and y != y), (x, y)
    return mabs, mrel


def to_double(tree):
    return pt.tree_map(lambda t: t.double() if isinstance(t, torch.Tensor) and t.dtype == torch.float32 else t, tree)


def tensors(prefix, tree):
    return {f'{prefix}{i}': t.detach().resolve_conj().resolve_neg().contiguous().clone() for i, t in enumerate(leaves(tree)) if isinstance(t, torch.Tensor)}


def state_snapshot(m):
    s = {f'param.{k}': v.detach().clone() for k, v in m.named_parameters(remove_duplicate=False) if type(v.data) is torch.Tensor}
    s.update({f'buffer.{k}': v.detach().clone() for k, v in m.named_buffers(remove_duplicate=False)})
    return s


def changed(before, after):
    return {k: v.contiguous() for k, v in after.items() if k in before and (before[k].shape != v.shape or not torch.equal(torch.nan_to_num(before[k].float()) if before[k].is_floating_point() else before[k], torch.nan_to_num(v.float()) if v.is_floating_point() else v))}


def run_cases(m, cases, sequence, grad=False):
    """eager run; fresh copy of the module per case unless sequence"""
    res = []
    cur = copy.deepcopy(m)
    for args, kwargs in cases:
        if not sequence: cur = copy.deepcopy(m)
        a, k = clone_tree(args), clone_tree(kwargs)
        before = state_snapshot(cur)
        with torch.enable_grad() if grad else torch.no_grad():
            out = cur(*a, **k)
        mut = changed(before, state_snapshot(cur))
        for i, (x, y) in enumerate(zip(leaves((args, kwargs)), leaves((a, k)))):
            if isinstance(x, torch.Tensor) and x.numel() and not torch.equal(torch.nan_to_num(x) if x.is_floating_point() else x, torch.nan_to_num(y) if y.is_floating_point() else y):
                mut[f'input.{i}'] = y.detach().contiguous().clone()
        res.append((pt.tree_map(lambda t: t.detach().clone() if isinstance(t, torch.Tensor) else t, out), mut))
    return res


def build(name, spec, outdir, group, want_core_hist=True, core_variant=None):
    """spec: dict(m, args, kwargs={}, dyn=None, cases=[(args,kwargs)], rejects=[(args,kwargs,msg)], strict=False, sequence=False,
                  core=bool, extra_files, preserve, note, f64=True, export=callable(optional) -> ep, grad=False)"""
    t0 = time.time()
    m = spec['m']; args = spec.get('args', ()); kwargs = spec.get('kwargs', {})
    cases = [(args, kwargs)] + [c if isinstance(c, tuple) and len(c) == 2 and isinstance(c[1], dict) else (c, {}) for c in spec.get('cases', [])]
    seq = spec.get('sequence', False)
    if not spec.get('train', False): m.eval()
    eager = run_cases(m, cases, seq, spec.get('grad', False))
    if 'export' in spec:
        ep = spec['export'](copy.deepcopy(m), clone_tree(args), clone_tree(kwargs))
    else:
        ep = torch.export.export(copy.deepcopy(m), clone_tree(args), clone_tree(kwargs), dynamic_shapes=spec.get('dyn'), strict=spec.get('strict', False),
                                 preserve_module_call_signature=spec.get('preserve', ()))
    out = [write_fixture(name, 'export', ep, spec, cases, eager, outdir, group, t0, m, want_core_hist)]
    if core_variant if core_variant is not None else spec.get('core', False):
        t0 = time.time()
        ep2 = (spec['decompose'](ep) if 'decompose' in spec else ep.run_decompositions())
        out.append(write_fixture(name + '__core', 'core', ep2, spec, cases, eager, outdir, group, t0, m, False))
    return out


def write_fixture(name, variant, ep, spec, cases, eager, outdir, group, t0, m, want_core_hist):
    d = os.path.join(outdir, name)
    shutil.rmtree(d, ignore_errors=True); os.makedirs(d)
    p = os.path.join(d, 'model.pt2')
    spec['save'](ep, p) if 'save' in spec else torch.export.save(ep, p, extra_files=spec.get('extra_files'))
    seq = spec.get('sequence', False)
    names = [s.arg.name for s in ep.graph_signature.input_specs if s.kind.name == 'USER_INPUT']
    ep2 = torch.export.load(p)
    text = str(ep2.graph_module.graph)
    open(os.path.join(d, 'graph.txt'), 'w').write(text)
    errs = []; cmeta = []; err64 = None
    mod = ep2.module() if spec.get('runnable', True) else None
    for k, ((a, kw), (exp, mut)) in enumerate(zip(cases, eager)):
        if not seq and k and mod is not None: mod = torch.export.load(p).module()
        a2, k2 = clone_tree(a), clone_tree(kw)
        if mod is not None:
            before = state_snapshot(mod)
            with torch.no_grad(): got = mod(*a2, **k2)
            e = compare(exp, got)
            after = changed(before, state_snapshot(mod))
            assert set(after) <= set(mut) or spec.get('loose_mut'), ('mutation sets differ', set(after) ^ set(k_ for k_ in mut if not k_.startswith('input.')))
            for kk in after:
                em = compare(mut[kk], after[kk]); e = (max(e[0], em[0]), max(e[1], em[1]))
            for kk in mut:
                if kk.startswith('input.'):
                    em = compare(mut[kk], leaves((a2, k2))[int(kk[6:])]); e = (max(e[0], em[0]), max(e[1], em[1]))
            errs.append(e)
        suf = '' if k == 0 else f'_{k}'
        tin = tensors('in', (a, kw)); tout = tensors('out', exp); tout.update({k_: v.clone() for k_, v in mut.items()})
        save_file(tin, os.path.join(d, f'inputs{suf}.safetensors'))
        save_file(tout, os.path.join(d, f'expected{suf}.safetensors'))
        cmeta.append({'inputs': [dict(describe(x), name=n) for x, n in zip(leaves((a, kw)), names)], 'outputs': [describe(x) for x in leaves(exp)], 'mutated': sorted(mut)})
        assert len(leaves((a, kw))) == len(names), (len(leaves((a, kw))), names)
    rej = []
    for k, r in enumerate(spec.get('rejects', [])):
        a, kw, why = r
        save_file(tensors('in', (a, kw)), os.path.join(d, f'reject_{k}.safetensors'))
        try:
            with torch.no_grad(): torch.export.load(p).module()(*clone_tree(a), **clone_tree(kw))
            msg = None
        except BaseException as ex:
            msg = type(ex).__name__ + ': ' + str(ex).split('\n')[0][:300]
        rej.append({'why': why, 'torch_says': msg, 'inputs': [describe(x) for x in leaves((a, kw))]})
    # float64 reference of the same eager module -> how much fp32 itself is worth here, per output
    flat = [leaves(o) for o, _ in eager]; nout = len(flat[0]); isf = lambda x: isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())
    fdt = {x.dtype for o in flat for x in o if isf(x)}
    e64 = [None] * nout
    if spec.get('f64', True) and torch.float32 in fdt:
        try:
            r64 = run_cases(copy.deepcopy(m).double(), [(to_double(a), to_double(k)) for a, k in cases], seq)
            for i in range(nout):
                try: e64[i] = [max(compare([leaves(r[0])[i]], [e[i]])[j] for r, e in zip(r64, flat)) for j in (0, 1)]
                except AssertionError: pass
        except Exception as ex:
            pass
    def absmax(x):
        x = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
        x = x.detach().double().abs(); x = x[torch.isfinite(x)]; return x.max().item() if x.numel() else 0.0
    RT = {torch.float64: 1e-10, torch.float32: 1e-5, torch.complex64: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
    tol = []; scale = 0.0
    for i in range(nout):
        xs = [o[i] for o in flat]
        if not isf(xs[0]): tol.append(None); continue
        s = max(absmax(x) for x in xs); scale = max(scale, s); eps = EPS.get(xs[0].dtype, 2 ** -3)
        low = min((t for t in fdt), key=lambda t: -EPS.get(t, 0)); floor = 4 * eps * s
        at = max(floor, 8 * e64[i][0] if e64[i] and xs[0].dtype == torch.float32 and e64[i][0] < 0.1 * max(s, 1e-30) else 0.0)
        if not spec.get('nocap'): at = max(floor, min(at, 2e-3 * s))
        if not math.isfinite(at) or s > 1e30: at = 0.0
        tol.append({'rtol': RT.get(xs[0].dtype, 0.2), 'atol': float(f'{at:.2g}')})
    err64 = [max((e[j] for e in e64 if e and math.isfinite(e[0])), default=0.0) for j in (0, 1)] if any(e64) else None
    if 'tol' in spec: tol = [spec['tol'] if t else t for t in tol]
    if spec.get('joint'):
        mm = copy.deepcopy(m); o = leaves(mm(*clone_tree(cases[0][0]), **clone_tree(cases[0][1])))[spec.get('loss_index', 0)]; o.backward()
        save_file({k: v.grad.contiguous() for k, v in mm.named_parameters() if v.grad is not None}, os.path.join(d, 'grads.safetensors'))
        flat = [ep2.state_dict[s.target] if s.kind.name in ('PARAMETER', 'BUFFER') else ep2.constants[s.target] if s.kind.name == 'CONSTANT_TENSOR' else None for s in ep2.graph_signature.input_specs]
        it = iter(leaves(cases[0])); flat = [next(it) if s.kind.name == 'USER_INPUT' else t for s, t in zip(ep2.graph_signature.input_specs, flat)]
        with torch.no_grad(): res = torch.fx.Interpreter(ep2.graph_module).run(*flat)
        for s, r in zip(ep2.graph_signature.output_specs, res):
            if s.kind.name == 'GRADIENT_TO_PARAMETER': errs.append(compare(dict(mm.named_parameters())[s.target].grad, r))
            elif s.kind.name == 'LOSS_OUTPUT': errs.append(compare(o, r))
    meta = {
        'name': name, 'group': group, 'variant': variant, 'note': spec.get('note', ''), 'torch': torch.__version__, 'seed': seed_for(name.replace('__core', '')),
        'strict': spec.get('strict', False), 'sequence': seq, 'verifiers': [v.dialect for v in ep.verifiers],
        'nodes': n_nodes(ep.graph_module), 'ops': dict(sorted(op_hist(ep.graph_module).items())),
        'param_elems': sum(t.numel() for t in ep.state_dict.values()), 'state_dtypes': sorted({str(t.dtype)[6:] for t in ep.state_dict.values()}),
        'out_dtypes': sorted({str(x.dtype)[6:] for o, _ in eager for x in leaves(o) if isinstance(x, torch.Tensor)}),
        'range_constraints': {str(k): [str(v.lower), str(v.upper)] for k, v in ep.range_constraints.items()},
        'guards_code': list(ep._guards_code),
        'input_kinds': dict(collections.Counter(s.kind.name for s in ep.graph_signature.input_specs)),
        'output_kinds': dict(collections.Counter(s.kind.name for s in ep.graph_signature.output_specs)),
        'cases': cmeta, 'rejects': rej,
        'out_absmax': scale,
        'err_reloaded_vs_eager': {'max_abs': max((e[0] for e in errs), default=None), 'max_rel_to_absmax': max((e[1] for e in errs), default=None)},
        'err_eager_f32_vs_f64': None if err64 is None else {'max_abs': err64[0], 'max_rel_to_absmax': err64[1]},
        'tolerance_per_output': tol,
        'pt2_bytes': os.path.getsize(p),
    }
    if want_core_hist:
        try:
            ec = spec['decompose'](ep) if 'decompose' in spec else ep.run_decompositions()
            meta['ops_core'] = dict(sorted(op_hist(ec.graph_module).items())); meta['nodes_core'] = n_nodes(ec.graph_module)
        except Exception as ex:
            meta['ops_core_error'] = f'{type(ex).__name__}: {str(ex)[:300]}'
    meta['seconds'] = round(time.time() - t0, 2)
    meta.update(spec.get('meta', {}))
    json.dump(meta, open(os.path.join(d, 'meta.json'), 'w'), indent=1)
    return meta


def main(programs, outdir, group, argv):
    """argv: optional substrings to select programs"""
    os.makedirs(outdir, exist_ok=True)
    only = [a for a in argv if not a.startswith('-')]
    skip_done = '--resume' in argv
    log = []
    for name, fn in programs.items():
        if only and not any(o == name or (o.endswith('*') and name.startswith(o[:-1])) for o in only): continue
        if skip_done and os.path.exists(os.path.join(outdir, name, 'meta.json')): continue
        try:
            torch.manual_seed(seed_for(name)); torch._dynamo.reset() if hasattr(torch, '_dynamo') else None
            torch.manual_seed(seed_for(name))
            spec = fn()
            for meta in build(name, spec, outdir, group):
                e = meta['err_reloaded_vs_eager']; f = meta['err_eager_f32_vs_f64']
                print(f"ok   {meta['name']:42s} nodes={meta['nodes']:4d} bytes={meta['pt2_bytes']:9d} err={e['max_abs']} f64={f and round(f['max_abs'],9)} absmax={meta['out_absmax']:.3g} rej={[bool(r['torch_says']) for r in meta['rejects']]} core={'ops_core_error' not in meta} {meta['seconds']}s", flush=True)
        except Exception as ex:
            print(f"FAIL {name:42s} {type(ex).__name__}: {str(ex)[:400]}".replace('\n', ' '), flush=True)
            if '-v' in argv: traceback.print_exc()
