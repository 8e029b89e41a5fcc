public class Hello {
    public static void main(String[] arguments) throws Exception {
        Thread thread = new Thread(() -> System.out.println("hello from a thread"));
        thread.start();
        thread.join();
        System.err.println("to stderr");
        System.exit(6);
    }
}
