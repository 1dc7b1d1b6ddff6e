import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's recipes in a process of their own, driven by lines on standard input; every word is URL-encoded:
 *
 *   N make KIND NAME ARGUMENT…     a recipe of that kind, called NAME from then on
 *   N NAME OPERATION ARGUMENT…     see the recipe's class; operations of one name run one after another, on one thread
 *
 * Answers are `reply N WORD…` or `failure N CLASS MESSAGE`; what happens by itself is `event NAME EVENT WORD…`. The
 * process ends when its input does.
 */
public final class Peer {
  /** One recipe. What it returns are the words of the reply. */
  interface Recipe {
    List<String> call(String operation, List<String> arguments) throws Exception;
  }

  private static final PrintStream output =
      new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
  private static final Map<String, Recipe> recipes = new ConcurrentHashMap<>();
  private static final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

  public static void main(String[] arguments) throws Exception {
    CuratorFrameworkFactory.Builder builder =
        CuratorFrameworkFactory.builder()
            .connectString(arguments[0])
            .sessionTimeoutMs(Integer.parseInt(arguments[1]))
            .connectionTimeoutMs(15_000)
            .retryPolicy(new ExponentialBackoffRetry(50, 10, 1_000));
    if (arguments.length > 2) builder.authorization("digest", arguments[2].getBytes(StandardCharsets.UTF_8));
    CuratorFramework client = builder.build();
    client.getConnectionStateListenable().addListener((any, state) -> event("client", "state", state.name()));
    client.start();
    recipes.put("client", new Client(client));

    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      List<String> words = new ArrayList<>();
      for (String word : line.split(" ", -1)) words.add(URLDecoder.decode(word, StandardCharsets.UTF_8));
      String number = words.get(0);
      boolean makes = words.get(1).equals("make");
      String name = makes ? words.get(3) : words.get(1);
      threads.computeIfAbsent(name, Peer::thread).execute(() -> answer(number, words, makes, name, client));
    }
    Runtime.getRuntime().halt(0); // as sudden as the end of the test
  }

  private static ExecutorService thread(String name) {
    return Executors.newSingleThreadExecutor(
        (work) -> {
          Thread thread = new Thread(work, name);
          thread.setDaemon(true);
          return thread;
        });
  }

  private static void answer(
      String number, List<String> words, boolean makes, String name, CuratorFramework client) {
    try {
      if (makes) {
        recipes.put(name, make(words.get(2), name, words.subList(4, words.size()), client));
        print("reply", number);
        return;
      }
      Recipe recipe = recipes.get(name);
      if (recipe == null) throw new IllegalArgumentException("nothing is called " + name);
      List<String> reply = new ArrayList<>(Arrays.asList("reply", number));
      reply.addAll(recipe.call(words.get(2), words.subList(3, words.size())));
      print(reply.toArray(new String[0]));
    } catch (Throwable problem) {
      print("failure", number, problem.getClass().getSimpleName(), String.valueOf(problem.getMessage()));
    }
  }

  private static Recipe make(String kind, String name, List<String> arguments, CuratorFramework client)
      throws Exception {
    switch (kind) {
      case "latch":
        return new Elections.Latch(client, name, arguments);
      case "selector":
        return new Elections.Selector(client, name, arguments);
      case "mutex":
        return new Locks.Mutex(client, name, arguments);
      case "readWriteLock":
        return new Locks.ReadWrite(client, arguments);
      case "semaphore":
        return new Locks.Semaphore(client, arguments);
      case "doubleBarrier":
        return new Locks.DoubleBarrier(client, arguments);
      case "sharedCount":
        return new Values.Count(client, name, arguments);
      case "atomicLong":
        return new Values.AtomicLong(client, arguments);
      case "group":
        return new Values.Group(client, arguments);
      case "discovery":
        return new Discovery(client, name, arguments);
      case "queue":
      case "idQueue":
      case "delayQueue":
      case "priorityQueue":
        return Queues.make(kind, client, name, arguments);
      default:
        throw new IllegalArgumentException("no recipe is called " + kind);
    }
  }

  static void event(String name, String event, String... words) {
    List<String> all = new ArrayList<>(Arrays.asList("event", name, event));
    all.addAll(Arrays.asList(words));
    print(all.toArray(new String[0]));
  }

  private static synchronized void print(String... words) {
    List<String> encoded = new ArrayList<>();
    for (String word : words) encoded.add(URLEncoder.encode(word, StandardCharsets.UTF_8));
    output.println(String.join(" ", encoded));
  }

  static IllegalArgumentException unknown(String operation) {
    return new IllegalArgumentException("it cannot " + operation);
  }

  static List<String> words(Object... values) {
    List<String> words = new ArrayList<>();
    for (Object value : values) words.add(String.valueOf(value));
    return words;
  }
}
